"""What is on disk, row by row: documents, their schemas and row indexes, attributes held against them."""
