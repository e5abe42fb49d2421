"""Commands that make or remove files of a dataset."""
