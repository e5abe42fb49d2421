"""Queries in SQL over documents, attributes and outputs, by DuckDB.

    shards, parts ──streams──> Arrow ──columns──> views with the declared types ──session──> rows ──printing──> a table

DuckDB opens no file itself: `streams` and `parts` read, check as a mix does, and hand on only the columns that a query
asks for. What is JSON stays so until DuckDB has it, whose threads parse it.
"""
