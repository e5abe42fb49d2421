"""Random numbers are those of the rule `sample`, and of the document alone."""

from taggers.random import Random
from toolkit import Document
from toolkit.rules import sample_hash


def test_numbers_below_a_share_are_those_of_its_sample() -> None:
    numbers = []
    for i in range(2000):
        number = Random(seed="7").tag(Document("", id=f"é{i}", source="web"))
        drawn = sample_hash("7", "web", f"é{i}")
        assert all((number < share) == (drawn < share * 2**64) for share in (0.0, 0.001, 0.1, 0.5, 0.9, 1.0, number))
        numbers.append(number)
    assert 0.45 < sum(numbers) / len(numbers) < 0.55
    assert len(set(numbers)) == len(numbers)


def test_numbers_are_of_seed_source_and_id() -> None:
    known = Random().tag(Document("a", id="1", source="s"))
    assert known == Random().tag(Document("b", id="1", source="s", metadata={"a": 1}))
    others = [Random(seed="x").tag(Document("a", id="1", source="s"))]
    others += [Random().tag(Document("a", id=id, source=source)) for id, source in (("2", "s"), ("1", "t"), ("", "s1"))]
    assert len({known, *others}) == 5
