"""Attribute sets as files for other programs: a Parquet file a shard, with the declared types."""
