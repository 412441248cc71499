"""Convert datasets to NeMo Gym's task files and back: a rule's script, and a command (--help)."""

from adhere import cli
from adhere.jobs import convert

if "snakemake" in globals():
    cli.in_workflow(globals()["snakemake"], convert.gym_data)
elif __name__ == "__main__":
    cli.by_hand(convert.main)
