"""The Python API: the commands as functions, a dataset as rows, a tagger on a list of texts."""
