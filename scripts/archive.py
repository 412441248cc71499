"""Add failures to the archive: a rule's script, and a command of its own (--help)."""

from adhere import cli
from adhere.jobs import archive

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], archive.archive)
elif __name__ == "__main__":
    cli.by_hand(archive.main)
