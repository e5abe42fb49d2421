"""Commands that look at a dataset or an output and write nothing."""
