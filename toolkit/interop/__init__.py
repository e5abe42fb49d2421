"""Configurations and data of other programs."""
