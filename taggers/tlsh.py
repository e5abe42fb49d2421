"""A locality-sensitive hash of a text: of texts that differ little, hashes that differ little.

Source: TLSH (Oliver, Cheng, Chen 2013: A Locality Sensitive Hash), version 4, as Trend Micro's library computes it, and
for OSCAR 23.01 ungoliant 2.0 (``transformers/lsh.rs``, with the crate tlsh-rs). The package py-tlsh is compiled for 128
buckets and a checksum of one byte; OSCAR has 256 and three.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from toolkit import Batch, Document, Example, Tagger
from toolkit.text import LineTable, compiled, np

MIN_BYTES = 50

_PEARSON = np.frombuffer(
    bytes.fromhex(
        "0157310cb0b266a679c10654f9e62ca30ec5d5b5a155da5040ef18e2ec8e26c86eb168678dfdff324d6551122d601fde"
        "196bbe4656edf02248f214d6f4e395eb61ea39163cfa52afd0057fc76f3e87f8aea9d33a429a6ac3f5ab11bbb6b300f3"
        "8438944b80859e64827e5b0d99f6d8db7744df4e5358c9637a0b5c208872340a8a1e30b79c233d1a8f4afb5e81a23f98"
        "aa0773a7f1ce0396373b97dc5a3517837dad0fee4f5f59106989e1e0d9a0257b7649029d2e74099186e4cfd4cad745e5"
        "1bbc437ca8fc2a041d6c15f713cd27cbe928ba93c6c09b21a4bf62cca5b4754c8c24d2ac29369f08b9e871c4e72f9278"
        "33411c90fedd5dbdc28b702b476db8d1"
    ),
    dtype=np.uint8,
).astype(np.int64)
"""Pearson's permutation (Communications of the ACM 33, 1990)."""

# fmt: off
_LENGTHS = (
    1, 2, 3, 5, 7, 11, 17, 25, 38, 57, 86, 129, 194, 291, 437, 656, 854, 1110, 1443, 1876, 2439, 3171, 3475, 3823, 4205,
    4626, 5088, 5597, 6157, 6772, 7450, 8195, 9014, 9916, 10907, 11998, 13198, 14518, 15970, 17567, 19323, 21256, 23382,
    25720, 28292, 31121, 34233, 37656, 41422, 45564, 50121, 55133, 60646, 66711, 73382, 80721, 88793, 97672, 107439,
    118183, 130002, 143002, 157302, 173032, 190335, 209369, 230306, 253337, 278670, 306538, 337191, 370911, 408002,
    448802, 493682, 543050, 597356, 657091, 722800, 795081, 874589, 962048, 1058252, 1164078, 1280486, 1408534, 1549388,
    1704327, 1874759, 2062236, 2268459, 2495305, 2744836, 3019320, 3321252, 3653374, 4018711, 4420582, 4862641, 5348905,
    5883796, 6472176, 7119394, 7831333, 8614467, 9475909, 10423501, 11465851, 12612437, 13873681, 15261050, 16787154,
    18465870, 20312458, 22343706, 24578077, 27035886, 29739474, 32713425, 35984770, 39583245, 43541573, 47895730,
    52685306, 57953837, 63749221, 70124148, 77136564, 84850228, 93335252, 102668779, 112935659, 124229227, 136652151,
    150317384, 165349128, 181884040, 200072456, 220079703, 242087671, 266296456, 292926096, 322218735, 354440623,
    389884688, 428873168, 471760495, 518936559, 570830240, 627913311, 690704607, 759775136, 835752671, 919327967,
    1011260767, 1112386880, 1223623232, 1345985727, 1480584256, 1628642751, 1791507135, 1970657856, 2167723648,
    2384496256, 2622945920, 2885240448, 3173764736, 3491141248, 3840255616, 4224281216,
)
# fmt: on
"""The most bytes that each number in the hash's header stands for: about powers of 1.5, 1.3, then 1.1."""


class Tlsh(Tagger):
    r"""``tlsh:T1`` and a hexadecimal hash: of the UTF-8 of the lines joined by ``\n``.

    Null for less than 50 bytes, and if too few buckets are filled to distinguish texts: at most a quarter, or the share
    that `filled` says.

    Attributes:
        buckets: the number of buckets, each with two bits of the hash
        checksum: the number of bytes of the checksum
        filled: the share of buckets that must be exceeded by the filled ones; 0.5 in Trend Micro's code
    """

    EXAMPLES = (
        Example("", None),
        Example(
            "To be, or not to be, that is the question: Whether 'tis nobler in the mind to suffer",
            "tlsh:T149002FA011BE02002A8ACF08A08A0E082AF0C80AB200A0C20083208838020EB2A20830E3A0033A00233002322000088CEF"
            "AC0303B8FCAB22E3B008A2220E8823A3022B28E8",
        ),
        Example(
            "Die Größe der Flüsse ändert sich übers Jahr, und mit ihr die Tiefe des Wassers im Tal.",
            "tlsh:T1F6B0125216941484D74E3238320C2E2B101CA32040103A1D6C1941441C2457C40CCD79",
            options={"buckets": 128, "checksum": 1, "filled": 0.5},
        ),
        Example("a" * 100, None),
    )

    buckets: Literal[128, 256] = 256
    checksum: Literal[1, 3] = 3
    filled: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0

    def tag_batch(self, documents: Sequence[Document]) -> list[str | None]:
        if not documents:
            return []
        lines = Batch.of(documents).lines
        counts = np.zeros((len(documents), 256), dtype=np.int64)
        checksums = np.zeros((len(documents), 3), dtype=np.int64)
        sizes = np.zeros(len(documents), dtype=np.int64)
        _count(lines, len(documents), _PEARSON, counts, checksums, sizes)
        counts = counts[:, : self.buckets]
        quartiles = np.sort(counts, axis=1)[:, self.buckets // 4 - 1 :: self.buckets // 4]
        q1, q2, q3 = (quartiles[:, i] for i in range(3))
        filled = (counts > 0).sum(axis=1)
        good = (sizes >= MIN_BYTES) & (q3 > 0) & (filled > self.filled * self.buckets)
        codes = (counts[:, :, None] > quartiles[:, None, :3]).sum(axis=2)
        packed = (codes.reshape(len(documents), -1, 4) << np.array([0, 2, 4, 6])).sum(axis=2)
        lengths = np.searchsorted(_LENGTHS, sizes)
        ratio1, ratio2 = (100 * q // np.maximum(q3, 1) % 16 for q in (q1, q2))
        head = np.column_stack([checksums[:, : self.checksum], lengths])
        swapped = (head & 15) << 4 | head >> 4
        rows = np.column_stack([swapped, ratio1 << 4 | ratio2, packed[:, ::-1]]).astype(np.uint8)
        return [f"tlsh:T1{row.tobytes().hex().upper()}" if ok else None for row, ok in zip(rows, good, strict=True)]


@compiled(LineTable, "int64 int64* int64* int64* int64*")
def _count(lines: LineTable, n: Any, table: Any, counts: Any, checksums: Any, sizes: Any) -> None:
    """Count triplets of bytes in each window of five, by their hash."""
    utf8, starts, ends, _, bounds = lines
    for text in range(n):
        row = 256 * text
        size = b = c = d = e = check1 = check2 = check3 = 0  # b is the byte before a, c the one before b, …
        for line in range(bounds[text], bounds[text + 1]):
            end = ends[line]
            for i in range(starts[line], end if line + 1 == bounds[text + 1] else end + 1):
                a = utf8[i] & 255 if i < end else 10
                size += 1
                if size >= 5:
                    check1 = table[table[table[table[0] ^ a] ^ b] ^ check1]
                    check2 = table[table[table[table[check1] ^ a] ^ b] ^ check2]
                    check3 = table[table[table[table[check2] ^ a] ^ b] ^ check3]
                    counts[row + table[table[table[table[2] ^ a] ^ b] ^ c]] += 1
                    counts[row + table[table[table[table[3] ^ a] ^ b] ^ d]] += 1
                    counts[row + table[table[table[table[5] ^ a] ^ c] ^ d]] += 1
                    counts[row + table[table[table[table[7] ^ a] ^ c] ^ e]] += 1
                    counts[row + table[table[table[table[11] ^ a] ^ b] ^ e]] += 1
                    counts[row + table[table[table[table[13] ^ a] ^ d] ^ e]] += 1
                b, c, d, e = a, b, c, d
        checksums[3 * text], checksums[3 * text + 1], checksums[3 * text + 2] = check1, check2, check3
        sizes[text] = size
