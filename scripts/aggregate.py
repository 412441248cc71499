"""Write the summary of everything that is scored: a rule's script, and a command (--help)."""

from adhere import cli
from adhere.jobs import aggregate

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], aggregate.aggregate)
elif __name__ == "__main__":
    cli.by_hand(aggregate.main)
