"""Ranks and maps of scores: what `toolkit.whole_corpus.kinds.rank` and `toolkit.whole_corpus.kinds.map` are made of.

`runs` is what is kept of each shard: sorted distinct scores, group by group. From these `exact` finds the rank of each
score, in memory that is bounded; `fitting` fits maps.
"""
