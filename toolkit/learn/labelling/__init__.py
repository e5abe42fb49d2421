"""From documents and attribute sets to files of annotations, and of tasks for people.

``raw_files``   which file each document was ingested from
``asked``       what is asked of documents: a value of a set, and whether a document is among those that are written
``ml_filter``   annotation files of ml_filter, one for each raw file
``tasks``       tasks of Label Studio, records of Argilla
"""
