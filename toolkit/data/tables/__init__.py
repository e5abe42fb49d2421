"""Tables of Arrow and Parquet: their types and values as those of JSON, and attributes that are rows of one."""

TABLE = ".parquet"
"""Suffix of an attribute file that is a table."""
