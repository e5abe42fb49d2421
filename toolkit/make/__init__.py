"""Stages of authors of plugins: each makes an attribute set, or new documents, of the documents of a dataset."""
