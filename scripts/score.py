"""Score one results file: a rule's script, and a command of its own (--help)."""

from adhere import cli
from adhere.jobs import score

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], score.score)
elif __name__ == "__main__":
    cli.by_hand(score.main)
