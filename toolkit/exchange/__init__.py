"""The only place where rows of shards meet: `scatter` exchanges them, `tables` joins, sorts and ranks them."""
