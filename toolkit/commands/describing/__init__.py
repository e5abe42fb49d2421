"""Commands that describe a dataset or an output to others."""
