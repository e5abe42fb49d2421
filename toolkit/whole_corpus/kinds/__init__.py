"""Kinds of sets over the whole dataset, a module or package each; the contract is `toolkit.whole_corpus.kind`."""
