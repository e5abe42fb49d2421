"""Models that turn texts into vectors: how texts are put in batches, what a folder of a model has, what is computed."""
