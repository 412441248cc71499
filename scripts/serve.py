"""Serve a local model and answer its unfinished cells: a rule's script (no command of its own)."""

from adhere import cli
from adhere.jobs import serve

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], serve.serve)
