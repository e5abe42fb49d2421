"""Configurations held against the programs that they name; by hand with `python -m tests.oracles`, see frame.py."""
