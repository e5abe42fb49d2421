"""A pseudo-random number for each document, as a span of Dolma's form.

Source: Dolma 1.2.1, ``taggers/sampling.py``, ``random_number_v1``, whose numbers depend on the number of the process:
no two runs give the same. Here they are those of `random`, made from the document's identity.
"""

import xxhash

from toolkit import Document, Example, Span, Tagger


class DolmaRandom(Tagger):
    """A span over the text with the score of `random`: from 0 up to 1, rounded to 5 places.

    It depends on `seed`, ``source`` and ``id`` alone: the same in each run, whatever the text is.

    Attributes:
        seed: another seed gives other numbers
    """

    EXAMPLES = (
        Example("", [[0, 0, 0.18804]]),
        Example("any text", [[0, 8, 0.18804]]),
        Example("Größe", [[0, 5, 0.50631]], options={"seed": "another"}),
    )

    seed: str = ""

    def tag(self, document: Document) -> list[Span]:
        data = f"{self.seed}\0{document.source}\0{document.id}".encode()
        number = (xxhash.xxh3_64_intdigest(data) >> 11) / 2**53
        return [Span(0, document.chars, round(number, 5))]
