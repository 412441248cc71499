"""Serve the verifier over HTTP: a command (--help)."""

from adhere import cli
from adhere.jobs import serve_verifier

if __name__ == "__main__":
    cli.by_hand(serve_verifier.main)
