"""Descriptions of datasets and outputs for those who take them over: facts, Croissant documents, dataset cards."""
