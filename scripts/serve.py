"""Serve a local model and answer its unfinished cells: a rule's script (no command of its own)."""

import sys

from adhere import cli
from adhere.jobs import serve

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], serve.serve)
elif __name__ == "__main__":
    sys.exit(
        "serve.py runs as a job of the workflow only: `snakemake predictions --config models=…`"
    )
