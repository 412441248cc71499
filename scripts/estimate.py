"""Show what the calls that are still missing will take: a rule's script."""

from adhere import cli
from adhere.jobs import estimate

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], estimate.show)
elif __name__ == "__main__":
    cli.by_hand(estimate.main)
