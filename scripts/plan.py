"""Show in which order local models will be served, and how long that takes: a rule's script."""

from adhere import cli
from adhere.jobs import plan

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], plan.show)
elif __name__ == "__main__":
    cli.by_hand(plan.main)
