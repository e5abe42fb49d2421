"""One pass: what is per shard of all stages, done one after the other while the documents are in memory."""
