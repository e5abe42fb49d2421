"""Near duplicates: signatures propose pairs, sets of shingles decide."""
