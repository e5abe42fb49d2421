"""OSCAR 22.01, held against a slow reference of ungoliant's rules (peers/ungoliant.py)."""

from tests.oracles.of_oscar import OfOscar


class Oscar2201(OfOscar):
    """The release of 2022."""

    NAME = "oscar-22-01"
    CONFIG = "oscar-22.01.yaml"
    VALUES = ("identification", "annotation", "sentence_identifications")
