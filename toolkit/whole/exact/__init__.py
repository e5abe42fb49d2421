"""Exact duplicates: what is compared, hashed and kept sorted per shard; and which of equal ones stays.

``pieces``     a document's text, or its lines or paragraphs, as they are compared (`normalize`)
``runs``       per shard: distinct hashes in sorted runs, and which hash each text or piece has
``hashing``    hashes of pieces (`xxh3`), of which ``table`` and ``bloom`` say which are equal (`kernel`)
``resolving``  whole: partitions of the hashes, each of which fits into memory
``values``     per shard: what became of each document
"""
