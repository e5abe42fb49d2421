"""What is known of the work that is done: a record for each shard of a set, of each input, of each failure."""
