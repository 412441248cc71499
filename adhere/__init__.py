"""Adhere measures how well large language models follow instructions.

The package holds the logic of the workflow and never imports Snakemake; rules and scripts are
thin layers over it.
"""

__version__ = "0.1.0"

# Version of the judging protocol: prompts' assembly, order of steps, verdict rules. It is part of
# every fingerprint and of every score; raise it when the same inputs may give another verdict.
PROTOCOL = 1
