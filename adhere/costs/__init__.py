"""Costs: what calls took in tokens and money, what they may take, and what is to be expected."""
