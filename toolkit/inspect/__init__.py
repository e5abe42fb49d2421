"""Checks, statistics and descriptions of datasets and outputs."""
