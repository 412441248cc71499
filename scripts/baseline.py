"""Store results as a baseline: a rule's script, and a command of its own (--help)."""

from adhere import cli
from adhere.jobs import baseline

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], baseline.baseline)
elif __name__ == "__main__":
    cli.by_hand(baseline.main)
