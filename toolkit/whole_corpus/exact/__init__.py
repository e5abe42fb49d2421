"""Exact duplicates: what is compared, hashed and kept sorted per shard; and which of equal ones stays.

``pieces``     a document's text, or its lines, paragraphs or sentences, as they are compared, and their hashes (`xxh3`)
``runs``       per shard: distinct hashes in sorted runs, and which hash each text or piece has; which hashes are equal
``decisions``  whole: partitions of the hashes, each of which fits into memory; per shard: what became of each document
"""
