"""Samples of a dataset: made for taggers to be tried on, and looked at."""
