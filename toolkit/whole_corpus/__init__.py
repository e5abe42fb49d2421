"""Attribute sets made from all shards together: what a document is a duplicate of, in which sample, of which rank.

An entry of the sections ``dedup:``, ``sample:`` and ``calibrate:`` is an attribute set, its `kind` a module (or
package) of `kinds` with a class of the same name in CamelCase that extends `kind.Kind`; nothing else names it. A set is
made in three steps, each with its records, so that a killed run resumes where it stopped:

 1. per shard, `sign`: a `Signer` of the kind gets the shard's documents in blocks, joined with the values
    of the entry's expressions, and writes what is to be kept of them: sorted fixed-width records, not text. It is below
    ``.toolkit/dedup/SET/signatures/SHARD/``, with the record ``SHARD.json`` beside it, written last. A shard whose
    documents, settings and read sets are the same is never read again.
 2. whole, `Kind.resolve`: from the signatures of all shards to fates, written below
    ``.toolkit/dedup/SET/decisions-KEY/`` by tasks that the executor runs. KEY is a digest of all that it was made
    from. It returns a digest of each shard's fates: where that is another than before, the record of the shard in the
    set is deleted, then a `Resolution` is recorded. A kind without this step leaves `resolve` as it is.
    What a kind has fitted, and is to stay when other shards come, lies beside that (`Kind.fitted`, `Work.home`).
 3. per shard, `resolve`: `Kind.values` gives the value of each document, in order, from signatures and
    fates. The framework writes them as any attribute set is written: same file, schema, completion record, lineage.

So mix, validate, stats and previews know these sets as they know those of taggers. `section` reads the configuration,
`expressions` compiles what it says of documents, `records` is what is on disk, in files that are `sealed`.

What all kinds keep to: the result is a function of the documents and the settings, the same bytes for any number of
processes and any interruption; memory is bounded by `Work.memory`; values are objects, never null.
"""
