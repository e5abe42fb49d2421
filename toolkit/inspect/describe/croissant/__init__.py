"""Croissant: the JSON-LD document of a dataset or an output."""
