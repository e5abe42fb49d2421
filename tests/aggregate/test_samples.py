"""Samples: the same in whatever parts documents come."""

import random

from toolkit.aggregate.samples import CHARS, Least, Samples, chosen
from toolkit.data.documents import Document


def test_samples_depend_on_ids_alone_and_are_of_several_labels() -> None:
    documents = [(f'"{label}"', Document(f"text {i}" * 300, id=f"{label}-{i}")) for label in "abc" for i in range(40)]
    documents += [('"a"', Document("x", id=f"more-{i}")) for i in range(500)]

    def kept(some: list[tuple[str, Document]]) -> Samples:
        found = Samples(3)
        for label, document in some:
            found.add("file:1", label, document)
        return found

    whole = kept(documents).kept()
    assert {each.label for each in whole} == {'"a"', '"b"', '"c"'}
    parts = [kept(documents[start::7]).kept() for start in range(7)]
    random.Random(1).shuffle(parts)
    assert chosen((each for part in parts for each in part), 3) == whole
    assert all(len(each.text) == CHARS and each.chars > CHARS for each in whole if not each.id.startswith("more"))
    one = kept([pair for pair in documents if pair[0] == '"a"'])
    assert len(one.kept()) == 3  # of one label, where there are no others


def test_the_least_are_kept_and_ties_go_by_the_rest_of_an_item() -> None:
    items = [(i % 7, i) for i in range(100)]
    found = Least[tuple[int, int]]()
    for some in (items[50:], items[:50]):
        found.add("a", 9, some)
    assert found.found == {"a": sorted(items)[:9]}
    assert found.has_room("a", 9, (0,))
    assert not found.has_room("a", 9, (1,))
    assert not found.has_room("b", 0, (0,))
