#!/usr/bin/env bash
# Run by Snakemake inside the new environment, from the project's folder: the lock is complete, and
# pip checks each file against it.
set -euo pipefail
python -m pip install --no-input --no-deps --require-hashes -r requirements.lock
