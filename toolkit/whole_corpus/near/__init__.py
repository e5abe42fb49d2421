"""Near duplicates: signatures propose pairs, sets of shingles decide.

`signing` has the shingles of texts, signatures of these, and how probable it is that two documents are compared;
`kernel` the compiled code. Around them the steps that need more room than memory has, each a task of one range of the
work:

    signing    per shard            text -> signatures, kept
    connecting per range of keys    signatures -> pairs of documents that share a bucket
               per part             pairs -> components -> units: documents that are decided together, in order
    evidence   per shard            text of the documents of units -> sets of shingles, by unit
    deciding   per unit             the unit in order -> values, by shard
               per shard            values of all units, and of an earlier resolution, in the order of the rows

`resolving` runs them.
"""
