"""Pages of a crawl by its index: which there are, which are wanted, and the records of these alone."""
