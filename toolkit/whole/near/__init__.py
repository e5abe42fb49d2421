"""Near duplicates: signatures propose pairs, sets of shingles decide. What `toolkit.whole.kinds.near` is made of.

Pure parts, which know no files: `shingles` of texts, `signatures` of shingles, `bands` of signatures (and how probable
it is that two documents are compared), `decision` (what is a duplicate of what, in windows), `kernel` (their compiled
code), `components` of a graph (in files on the local disk). Around them the steps that need more room than memory has,
each a task of one range of the work:

    signing    per shard            text -> signatures, kept
    buckets    per range of keys    signatures -> pairs of documents that share a bucket
    connecting whole                pairs -> `components` -> parts: documents that belong together
    graph      per part             candidates -> units: documents that are decided together, in order
    evidence   per shard            text of the documents of units -> sets of shingles, in files by unit
    deciding   per unit             the unit in order -> `decision` -> values, by shard; or what was decided before
    fates      per shard            values of all units in the order of the rows

Tasks hand their work over in files of `sections`. `resolving` runs them.
"""
