"""The exchange of rows between shards: `scatter` exchanges them, `tables` joins, sorts and ranks them."""
