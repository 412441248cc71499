"""Try out every checker of a dataset: a rule's script, and a command (--help)."""

from adhere import cli
from adhere.jobs import checkers

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], checkers.show)
elif __name__ == "__main__":
    cli.by_hand(checkers.main)
