"""Records of the work that is done: of each shard of a set, of each input, of each failure."""
