"""Shuffled outputs: the documents, or lines, of each label in the order of their hashes, out of core.

Stage 1 puts a hash before each piece (`frames`) and writes runs: as many pieces as it may hold, sorted, in members that
say between which hashes they are, and beside them the hash and size of each. The plan (`cuts`) finds in these the
hashes at which parts of equal size end. Stage 2 reads, for a part, what of all runs is between two hashes, in ranges
that fit into memory, and sorts these.
"""
