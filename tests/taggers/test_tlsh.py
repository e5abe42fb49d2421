"""TLSH: the published test vectors, a slow computation, and the library where it is installed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taggers.tlsh import _LENGTHS, _PEARSON, Tlsh
from toolkit import Document


def published(begin: str, size: int) -> str:
    """A text of Trend Micro's tests: letters in order, a NUL at the end."""
    text = "".join(chr(i % 26 + 65) for i in range(size - 1)) + "\0"
    return begin + text[len(begin) :]


ONE = published("This is a test for Lili Diao. This is a string. Hello Hello Hello ", 512)
TWO = published("This is a test for Jon Oliver. This is a string. Hello Hello Hello ", 1024)


@pytest.mark.parametrize(
    ("text", "buckets", "checksum", "digits"),
    [
        (ONE, 128, 1, "09F05A198CC69A5A4F0F9380A9EE93F2B927CF42089EA74276DC5F0BB2D34E68114448"),
        (TWO, 128, 1, "301124198C869A5A4F0F9380A9AE92F2B9278F42089EA34272885F0FB2D34E6911444C"),
        (
            ONE, 256, 3,
            ("096463F055A00114F31B8A069219E18273306B0EC081BBDF9D070C865DC638A0D910D029AE198CC69A5A4F0F9380A9EE93F2BA2BCF42"
            "08AEA74276DC5F0BB2D34E68114848"),
        ),
        (
            TWO, 256, 3,
            ("30AEF1112A600114F35ACA028219F14673306B1EC481BFDF8D070C865AC638A0D910D029EE1A8C869A5A4F0F9380A9AEA2F2BA2B8F82"
            "08AEA34272885F0FB2D34E6912484C"),
        ),
    ],
)  # fmt: skip
def test_published_hashes(text: str, buckets: int, checksum: int, digits: str) -> None:
    assert Tlsh(buckets=buckets, checksum=checksum).tag(Document(text)) == f"tlsh:T1{digits}"  # type: ignore[arg-type]


def slow(text: str, buckets: int, checksum: int, filled: float) -> str | None:
    data = "\n".join(Document(text).lines).encode()
    table = _PEARSON.tolist()

    def pearson(*values: int) -> int:
        hashed = 0
        for value in values:
            hashed = table[hashed ^ value]
        return hashed

    counts, checks = [0] * 256, [0, 0, 0]
    for i in range(4, len(data)):
        a, b, c, d, e = data[i - 4 : i + 1][::-1]
        for k in range(3):
            checks[k] = pearson(checks[k - 1] if k else 0, a, b, checks[k])
        for salted in ((2, a, b, c), (3, a, b, d), (5, a, c, d), (7, a, c, e), (11, a, b, e), (13, a, d, e)):
            counts[pearson(*salted)] += 1
    counts = counts[:buckets]
    q1, q2, q3 = (sorted(counts)[buckets // 4 * k - 1] for k in (1, 2, 3))
    if len(data) < 50 or not q3 or sum(map(bool, counts)) <= filled * buckets:
        return None
    codes = [
        sum(((n > q1) + (n > q2) + (n > q3)) << 2 * j for j, n in enumerate(counts[i : i + 4]))
        for i in range(0, buckets, 4)
    ]
    length = next(i for i, top in enumerate(_LENGTHS) if len(data) <= top)
    head = "".join(f"{byte:02X}"[::-1] for byte in [*checks[:checksum], length])
    return f"tlsh:T1{head}{q1 * 100 // q3 % 16:X}{q2 * 100 // q3 % 16:X}" + bytes(codes[::-1]).hex().upper()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.text(st.sampled_from("abcdefghijklmno éß日\r\n"), max_size=200), max_size=4),
    st.sampled_from([128, 256]),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 0.3, 0.5]),
)
def test_as_computed_slowly(texts: list[str], buckets: int, checksum: int, filled: float) -> None:
    tagger = Tlsh(buckets=buckets, checksum=checksum, filled=filled)  # type: ignore[arg-type]
    texts = [text * 3 for text in texts]
    assert tagger.tag_batch([Document(t) for t in texts]) == [slow(t, buckets, checksum, filled) for t in texts]


def test_as_the_library_computes() -> None:
    library = pytest.importorskip("tlsh", reason="the package py-tlsh")
    tagger = Tlsh(buckets=128, checksum=1, filled=0.5)
    for text in (ONE, TWO, "a" * 60, "short", "".join(map(chr, range(0x400, 0x480))), ONE[:50], ONE[:49]):
        expected = library.hash(text.encode())
        assert tagger.tag(Document(text)) == (None if expected in ("", "TNULL") else f"tlsh:{expected}")
