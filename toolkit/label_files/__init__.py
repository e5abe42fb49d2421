"""External files of annotations: of models (ml_filter), and of people (Label Studio, Argilla).

``formats/``   a module a form, which reads it (values by id, for `toolkit align`) and writes it (`annotate`, `view`)
"""
