"""Instruction sets that teams write by hand, and the rows of a dataset that they become."""

from adhere.instruction_set.read import ReadSet, read_set
from adhere.instruction_set.rows import to_rows

__all__ = ["ReadSet", "read_set", "to_rows"]
