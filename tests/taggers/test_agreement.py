"""The vote of several sets, against a few lines of plain Python; and in a configuration."""

from hypothesis import given
from hypothesis import strategies as st

from taggers.agreement import Agreement
from tests.pipeline.conftest import Project, project, small
from toolkit import Document

__all__ = ["project", "small"]

LABELS = st.sampled_from(["en", "de", "fr", None])


@given(st.lists(LABELS, min_size=2, max_size=6), st.integers(1, 3), st.booleans())
def test_the_vote(labels: list[str | None], least: int, first: bool) -> None:
    names = [f"s-{i}.k.label" for i in range(len(labels))]
    document = Document("text")
    for name, label in zip(names, labels, strict=True):
        document.give(name, label)
    found = Agreement(of=names, min_votes=least, tie="first" if first else "none").tag(document)
    there = [label for label in labels if label is not None]
    votes = max((there.count(label) for label in there), default=0)
    winners = [label for i, label in enumerate(there) if there.count(label) == votes and label not in there[:i]]
    wins = votes >= least and (len(winners) == 1 or (first and winners))
    assert (found.label, found.votes, found.voters) == (winners[0] if wins else None, votes, len(there))
    assert found.agreement == (votes / len(there) if there else 0)


def test_sets_vote_in_a_configuration(small: Project) -> None:
    """A set that is not there, and one that votes twice, are refused before anything is written."""
    small.config["tag"] = {
        "one-0": {"tagger": "text_language"},
        "two-0": {"tagger": "text_language", "labels": "oscar"},
        "vote-0": {"tagger": "agreement", "of": ["one-0.text_language.label", "two-0.text_language.label"]},
    }
    small.ok("tag")
    shards = [path.relative_to(small.documents) for path in small.documents.rglob("*.gz")]
    for value in [value for shard in shards for value in small.values("vote-0", str(shard))]:
        assert value["agreement"]["votes"] == value["agreement"]["voters"] in (0, 2)
    for of, message in (
        (["one-0.text_language.label", "three-0.x.label"], "of[1]: 'three-0.x.label': expected an attribute set"),
        (["one-0.text_language.label"] * 2, "expected each set once"),
        (["one-0.text_language.label"], "of"),
        (["one-0.text_language", "two-0.text_language"], "of[0]: 'one-0.text_language': expected a value of type str"),
    ):
        small.config["tag"]["vote-1"] = {"tagger": "agreement", "of": of}
        small("tag").fails(2, message)
    assert not (small.attributes / "vote-1").exists()
