"""Near duplicates: signatures propose pairs, sets of shingles decide.

``minhash``     per shard: shingles of texts, and their signatures; the probability that two documents are compared
``components``  per range of keys: signatures -> pairs of documents that share a bucket
                per part: pairs -> connected components -> units: documents that are decided together, in order
``comparison``  per shard: text of the documents of units -> sets of shingles, by unit; the decision about a unit
``decisions``   per unit: the unit in order -> values, by shard
                per shard: values of all units, and of an earlier resolution, in the order of the rows
``kernel``      the compiled code

`decisions.resolve` runs these steps. Those around `minhash` may need more room than memory has: each is a task of one
range of the work.
"""
