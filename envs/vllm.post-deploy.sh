#!/usr/bin/env bash
# Run by Snakemake inside the new environment, from the project's folder: vLLM and what the job
# itself needs, resolved together.
set -euo pipefail
python -m pip install --no-input ".[vllm]"
