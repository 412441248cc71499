"""Judge a prediction file: a rule's script, and a command of its own (--help)."""

from adhere import cli
from adhere.jobs import judge, judge_by_hand

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], judge.judge)
elif __name__ == "__main__":
    cli.by_hand(
        judge_by_hand.main,
        "replies that came in are kept beside the output: the same command goes on from there",
    )
