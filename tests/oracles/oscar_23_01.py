"""OSCAR 23.01, held against a slow reference of ungoliant's rules (peers/ungoliant.py)."""

from tests.oracles.of_oscar import OfOscar


class Oscar2301(OfOscar):
    """The release of 2023."""

    NAME = "oscar-23-01"
    CONFIG = "oscar-23.01.yaml"
    VALUES = ("identification", "quality_warnings", "sentence_identifications")
