"""Show models, modes and judges, and what is done and missing: a rule's script."""

from adhere import cli
from adhere.jobs import list as listing

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], listing.show)
elif __name__ == "__main__":
    cli.by_hand(listing.main)
