"""Ask a model every item of a dataset: a rule's script, and a command of its own (--help)."""

from adhere import cli
from adhere.jobs import predict, predict_by_hand

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], predict.predict)
elif __name__ == "__main__":
    cli.by_hand(
        predict_by_hand.main,
        "answers that came in are kept beside the output: the same command goes on from there",
    )
