"""Rows on disk: documents, their schemas and row indexes, attributes held against them."""
