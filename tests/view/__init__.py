"""Browsing a dataset, an output, and labelling by hand."""
