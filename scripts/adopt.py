"""Take over results that exist already: a command (--help), no rule's script."""

from adhere import cli
from adhere.jobs import adopt

if __name__ == "__main__":
    cli.by_hand(adopt.main)
