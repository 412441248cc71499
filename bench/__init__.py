"""Measurements: ``python -m bench`` (``make bench``), ``python -m bench.peers``.

Every figure is measured beside what it is compared with, in one run, and given as a ratio or as
processor time, since other work on the machine moves the clock's time of both alike.
"""
