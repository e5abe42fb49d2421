"""External values, found by id, as attribute sets: row n of a set describes row n of the documents.

inputs ──rows──> values and sorted ids, on disk ──merge──> one index by id ──shards──> attributes/<set>/…

Nothing is held in memory but a run of ids and a block of documents.
"""
