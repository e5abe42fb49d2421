"""Orphans: documents that a mix drops as copies of documents that it does not keep.

A rule drops a document *as a copy* if it mentions ``KEY.duplicate_of`` of a set that tells for each document which one
it is a copy of (``[source, id]``, or null). That is safe as long as the other one stays. `copies` notes while a shard
is mixed (or previewed) which documents stay and which are dropped as copies; `judging` then tells for the whole mix
which of them nothing stands for.

- A document stands for a copy if no rule drops it, or if it is itself dropped as a copy of one that stands for it: what
  is the same text as a page that is nearly the same as a third has not been lost.
- A copy that another rule drops as well is no orphan: it would not be in the output either.
- Samples, the draws of repeats and budgets, and the weights of streams count for nothing here: they take documents away
  at random, copies or not. An amount of 0 is no draw.
"""
