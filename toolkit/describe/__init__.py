"""Descriptions of datasets and outputs: facts, Croissant documents, dataset cards."""
