"""Hold results against thresholds and a baseline: a rule's script, and a command (--help)."""

from adhere import cli
from adhere.jobs import gate

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], gate.gate)
elif __name__ == "__main__":
    cli.by_hand(gate.main)
