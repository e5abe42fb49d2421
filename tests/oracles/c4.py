"""C4's configuration, with datatrove's numbers and sentences, against datatrove's C4QualityFilter with its defaults.

datatrove has neither C4's language nor its limit on the length of pages in this filter: both are left out.
"""

from tests.oracles.of_datatrove import Datatrove


class C4(Datatrove):
    """C4's rules for lines and pages."""

    NAME = "c4"
    CONFIG = "c4.yaml"
    LEFT_OUT = ("language", "long")
    REASONS = {
        "lorem_ipsum": "lorem_ipsum",
        "curly_bracket": "curly_bracket",
        "few_sentences": "too_few_sentences",
    }
    SETTINGS = (
        "tag.c4-0={tagger: c4, variant: datatrove, min_words: 3, max_word_chars: 1000}",
        "mix.parameters.min_sentences=5",
    )
