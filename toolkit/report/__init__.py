"""The report on a dataset or an output: its numbers and samples, as one JSON value that pages are made of."""
