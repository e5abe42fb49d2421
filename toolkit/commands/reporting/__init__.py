"""Reports: the runs of which they are, and the pages that are made of them."""
