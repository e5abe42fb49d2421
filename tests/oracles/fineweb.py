"""FineWeb's configuration against datatrove's filters, in the order and with the settings of its examples/fineweb.py.

Both sides start from the text (neither from WARC files), and take lid.176.ftz for the language, where FineWeb had
lid.176.bin. URLFilter and PIIFormatter are left out: the one needs lists, the other replaces addresses by texts that
take turns over all documents of a process.
"""

from tests.oracles.of_datatrove import GOPHER, Datatrove


class Fineweb(Datatrove):
    """FineWeb."""

    NAME = "fineweb"
    CONFIG = "fineweb.yaml"
    LEFT_OUT = ("pii",)
    REASONS = GOPHER | {
        "language": "LanguageFilter",
        "c4: lorem_ipsum": "lorem_ipsum",
        "c4: curly_bracket": "curly_bracket",
        "c4: few_sentences": "too_few_sentences",
        "fineweb: empty": "empty",
        "fineweb: line_ends": "line_punct_ratio",
        "fineweb: short_lines": "short_line_ratio",
        "fineweb: repeated_lines": "char_dup_ratio",
        "fineweb: list": "list_ratio",
    }
