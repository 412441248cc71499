"""Have people label verdicts of judges: a rule's script, and a command of its own (--help)."""

from adhere import cli
from adhere.jobs import spotcheck

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], spotcheck.spotcheck)
elif __name__ == "__main__":
    cli.by_hand(spotcheck.main)
