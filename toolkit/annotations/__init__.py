"""Files of annotations that others read and write: of models (ml_filter), and of people (Label Studio, Argilla).

``formats/``   from such files to values by id, for `toolkit align`
``files/``     from documents and attribute sets to such files, for `toolkit annotate --to`
"""
