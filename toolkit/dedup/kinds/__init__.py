"""Kinds of duplicates, a module or package each; the contract is `toolkit.dedup.kind`."""
