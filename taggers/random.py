"""A stable number of each document, for samples.

Source: none; Dolma's ``random_number_v1`` is seeded by the process, so that nobody gets its numbers again. The hash is
that of the rule ``sample``.
"""

import xxhash

from toolkit import Document, Example, Tagger


class Random(Tagger):
    r"""A number from 0 to less than 1: the upper 53 bits of xxh3-64 of seed, source and id, divided by 2^53.

    The three are in UTF-8, with NUL between them. The text does not matter: the number is the same on every machine and
    for every version of the data. The documents with a number below p are those that the rule ``{sample: p, seed: …}``
    keeps. (If p is no multiple of 2^-53, one document in 2^53 may differ.) In the examples, the id is ``id`` and the
    source ``source``.

    Attributes:
        seed: another seed gives other numbers
    """

    EXAMPLES = (
        Example("", 0.1880419259306768),
        Example("any text", 0.1880419259306768),
        Example("Größe", 0.5063136265942708, options={"seed": "another"}),
    )

    seed: str = ""

    def tag(self, document: Document) -> float:
        data = f"{self.seed}\0{document.source}\0{document.id}".encode()
        return (xxhash.xxh3_64_intdigest(data) >> 11) / 2**53
