"""Contract suites for the tests of plugins: one function for each kind, which checks all that the engine expects.

    from my_plugins.shouting import Shouting
    from toolkit.testing import check_tagger

    def test_it_is_a_tagger() -> None:
        check_tagger(Shouting)

They raise AssertionError, which says what is expected, what was got and what to do, and work with any test runner.
"""

from toolkit.testing.extractors import check_extractor
from toolkit.testing.readers import check_reader
from toolkit.testing.stages import check_stage
from toolkit.testing.stores import MemoryStore, check_readable_store, check_store
from toolkit.testing.taggers import check_tagger
from toolkit.testing.writers import check_writer

__all__ = [
    "MemoryStore",
    "check_extractor",
    "check_readable_store",
    "check_reader",
    "check_stage",
    "check_store",
    "check_tagger",
    "check_writer",
]
