"""Put a dataset where it belongs: a rule's script, and a command of its own (--help)."""

from adhere import cli
from adhere.jobs import fetch

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], fetch.fetch_selected)
elif __name__ == "__main__":
    cli.by_hand(fetch.main)
