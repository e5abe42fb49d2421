"""Documents that are dropped as copies of documents that are not kept: counted, shown, and not published unasked."""

import json
from typing import Any

import pytest

from tests.conftest import Ran
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.storage.conftest import bucket, seaweed

pytestmark = pytest.mark.slow

__all__ = ["bucket", "seaweed"]

TAGGER = '''
import msgspec

from toolkit import DataError, Tagger


class Value(msgspec.Struct):
    """What a document is a copy of, as its text says.

    Attributes:
        duplicate_of: source and id of the document that it is a copy of.
        size: how many there are.
    """

    duplicate_of: list[str] | None
    size: int = 1


class SaysSo(Tagger):
    """What a document is a copy of, as a word of its text says: ``exact=1`` of the document 1."""

    word: str = "exact"

    def tag(self, document) -> Value:
        for word in document.text.split():
            if word.startswith(f"{self.word}="):
                return Value(["s", word.partition("=")[2]], 2)
        return Value(None)
'''

EXACT = {"drop": "exact.duplicate_of is not None", "name": "exact_copies"}
NEAR = {"drop": "near.duplicate_of is not None", "name": "near_copies"}


def bad(id: str) -> dict[str, str]:
    return {"drop": f'document.id == "{id}"', "name": f"no {id}"}


@pytest.fixture
def copied(project: Project) -> Project:
    """A dataset with two sets that say what documents are copies of; its documents are given by `mixed`."""
    (project.root / "copies.py").write_text(TAGGER)
    tagger = f"{project.root}/copies.py:SaysSo"
    project.config |= {
        "tag": {name: {"tagger": tagger, "word": name, "as": name} for name in ("exact", "near")},
        "mix": {"attributes": ["exact", "near"], "output": {"format": "dolma", "path": str(project.out)}},
    }
    return project


def mixed(project: Project, rules: list[dict[str, Any]], *shards: dict[str, str], **settings: Any) -> Ran:
    """Mixes shards of documents (text by id), first as a dry run, which counts the same; publishes nothing twice."""
    for number, texts in enumerate(shards):
        rows = [document(id, text) for id, text in texts.items()]
        write_rows(project.documents / f"{number}.jsonl.gz", rows)
    project.config["mix"] |= {"rules": rules, **settings}
    project.ok("tag")
    before = tree(project.out)
    dry = project.ok("mix", "--dry-run", "--json")
    assert reported(project) == dry.json["orphans"]
    ran = project("mix", "--json")
    if ran.code == 0:
        assert dry.json["orphans"] == ran.json["orphans"]
        assert project.ok("mix", "--json").json["already"]
    else:
        assert sum(each["documents"] for each in dry.json["orphans"])
        assert "warning: " in dry.err
        assert tree(project.out) == before
        again = project("mix", "--json")
        assert (again.code, again.json["failed"]) == (ran.code, ran.json["failed"]), "nothing was to be done"
        assert project("mix").code == 1
    return ran


def reported(project: Project, *arguments: object) -> Any:
    """The orphans that a report shows."""
    path = project.root / "report.json"
    project.ok("report", "-o", path, *arguments)
    (run,) = json.loads(path.read_bytes())["runs"]
    return run["orphans"]


def ids(project: Project) -> str:
    return "".join(row["id"] for row in project.output())


def test_copies_of_what_stays_may_go(copied: Project) -> None:
    ran = mixed(copied, [EXACT, NEAR], {"a": "x", "b": "x exact=a"}, {"c": "y near=a exact=b", "d": "z"})
    assert (ran.code, ran.json["orphans"], ids(copied)) == (0, [], "ad")
    assert "orphans" not in copied.ok("mix", "--dry-run").out


def test_a_representative_that_a_later_rule_drops(copied: Project) -> None:
    ran = mixed(copied, [EXACT, bad("a")], {"b": "x exact=a", "c": "x exact=a"}, {"a": "x"}, {"d": "other"}).fails(1)
    (why,) = ran.json["failed"]
    assert "got 2 documents dropped as copies of documents that are not kept: 2 by 'exact_copies' (exact)" in why
    assert f"{copied.documents}/0.jsonl.gz:1: b (s), a copy of a (s); " in why
    assert "`orphans: allow`" in why
    assert "config.yaml:1: mix.output: " in why
    copied.config["mix"]["orphans"] = "allow"
    copied.ok("mix").shows("orphans: 2 documents dropped as copies")
    expected = [{"rule": "exact_copies", "stream": "", "set": "exact", "documents": 2}]
    assert reported(copied) == expected
    path = copied.root / "alone.json"
    assert copied.run("report", copied.out, "-o", path).code == 0
    assert json.loads(path.read_bytes())["runs"][0]["orphans"] == expected
    assert ids(copied) == "d"
    copied.config["mix"]["orphans"] = "refuse"
    ran = copied("mix")  # judged by the manifest, with nothing to do
    assert (ran.code, "2 by 'exact_copies' (exact)" in ran.err) == (1, True)


def test_sets_that_prefer_other_documents_lose_both(copied: Project) -> None:
    ran = mixed(copied, [EXACT, NEAR], {"a": "x near=b", "b": "x exact=a", "c": "y"}).fails(1)
    assert "2 documents dropped" in ran.json["failed"][0]
    assert "1 by 'exact_copies' (exact), 1 by 'near_copies' (near)" in ran.json["failed"][0]


def test_a_copy_of_a_copy_of_what_stays_has_not_been_lost(copied: Project) -> None:
    chain = {"c": "x exact=b", "b": "y near=a", "a": "z", "d": "exact=e", "e": "near=f", "f": "exact=a"}
    assert mixed(copied, [EXACT, NEAR], chain).code == 0


def test_what_another_rule_would_drop_anyway_is_no_orphan(copied: Project) -> None:
    short = {"drop": "document.chars < 10", "name": "short"}
    texts = {"a": "x", "b": "exact=a", "c": "longer than that"}
    assert mixed(copied, [EXACT, short], texts).code == 0
    assert mixed(copied, [short, EXACT], texts).code == 0
    assert mixed(copied, [{"drop": "document.chars < 2"}, EXACT], texts).code == 1


def test_a_sample_is_one_of_what_stays_otherwise(copied: Project) -> None:
    texts = {str(i): "x" for i in range(50)} | {f"b{i}": f"x exact={i}" for i in range(50)}
    ran = mixed(copied, [{"sample": 0.5}, EXACT, {"sample": 0.1, "seed": 1}], texts)
    assert (ran.code, 0 < len(copied.output()) < 20) == (0, True)
    assert mixed(copied, [{"sample": 0.5}, EXACT, bad("7")], texts).code == 1


def test_an_amount_of_none_is_a_rule_that_drops_and_other_amounts_are_not(copied: Project) -> None:
    texts = {"a": "x", "b": "x exact=a", "c": "y", "d": "y exact=c"}
    never = {"repeat": '0 if document.id == "a" else 0.5', "name": "never"}
    ran = mixed(copied, [EXACT, never], texts, allow_empty=True)
    assert (ran.code, "got 1 document dropped" in str(ran.json["failed"])) == (1, True)
    assert mixed(copied, [EXACT, {"repeat": 2.5}], texts).code == 0


def test_each_edition_is_judged_by_its_own_rules(copied: Project) -> None:
    """The mix itself keeps what an edition drops: that is published, and the edition is not."""
    write_rows(copied.documents / "0.jsonl.gz", [document("a", "x"), document("b", "x exact=a"), document("c", "y")])
    edition = {"rules": [EXACT, bad("a")], "output": {"path": str(copied.root / "edition")}}
    copied.config["mix"] |= {"rules": [EXACT], "editions": {"strict": edition}}
    copied.ok("tag")
    for _ in range(2):
        copied("mix").fails(1, "got 1 document dropped as copies of documents that are not kept")
        assert ids(copied) == "ac"
        assert not list((copied.root / "edition").rglob("*.jsonl.gz"))
    edition["orphans"] = "allow"
    assert "orphans: 1 document dropped" in copied.ok("mix").out
    assert list((copied.root / "edition").rglob("*.jsonl.gz"))


def test_only_rules_that_ask_what_a_document_is_a_copy_of_count(copied: Project) -> None:
    texts = {"a": "x", "b": "x exact=a", "c": "near=a"}
    assert (
        mixed(copied, [{"drop": "exact.size > 1"}, bad("a"), {"keep": "near.size == 1"}], texts, allow_empty=True).code
        == 0
    )
    rules = [{"keep": 'exact["duplicate_of"] is None'}, bad("a")]
    assert mixed(copied, rules, texts).code == 1
    pattern = {"drop": "$.attributes[?(@.exact.duplicate_of != null)]", "syntax": "jsonpath", "name": "pattern"}
    ran = mixed(copied, [pattern, bad("a")], texts)
    assert (ran.code, "'pattern'" in str(ran.json["failed"])) == (1, True)


def test_documents_that_are_not_there_stand_for_nothing(copied: Project) -> None:
    mixed(copied, [EXACT], {"b": "x exact=a"}, {"c": "y"}).fails(1)
    write_rows(copied.documents / "2.jsonl.gz", [document("a", "x")])
    copied.ok("tag")
    copied.ok("mix")
    (copied.attributes / "exact" / "2.jsonl.gz").unlink()
    copied.config["mix"]["on_failed_shard"] = "omit"
    copied("mix").fails(1, "1 document dropped as copies")
    copied.ok("tag")
    ran = copied.ok("mix", "--limit", "1", f"mix.output.path={copied.root}/limited", "mix.allow_empty=true")
    assert "warning" in ran.err


def test_streams_of_one_dataset_keep_for_each_other(copied: Project) -> None:
    texts = {"a": "x", "b": "x exact=a", "c": "z"}
    copied.config["mix"]["streams"] = {"one": {"rules": [bad("a")]}, "two": {"rules": [{"keep": 'document.id == "a"'}]}}
    assert mixed(copied, [EXACT], texts).code == 0
    assert ids(copied) == "ca"
    copied.config["mix"]["streams"]["two"]["rules"] = [{"keep": 'document.id == "d"'}]
    ran = mixed(copied, [EXACT], texts)
    assert (ran.code, "1 by one: 'exact_copies'" in str(ran.json["failed"])) == (1, True)


def test_copies_of_documents_of_other_datasets(copied: Project) -> None:
    """An earlier crawl, in which some documents are called as they are now."""
    del copied.config["tag"]["exact"]
    earlier = [document("old", "one"), document("same", "two")]
    write_rows(copied.root / "earlier" / "documents" / "x.jsonl.gz", earlier)
    copied.config["dedup"] = {"exact": {"kind": "exact", "against": f"{copied.root}/earlier"}}
    texts = {"a": "one", "b": "two", "same": "two", "c": "three", "d": "three", "e": "four"}
    write_rows(copied.documents / "0.jsonl.gz", [document(id, text) for id, text in texts.items()])
    copied.ok("tag")
    copied.ok("dedup")
    assert mixed(copied, [EXACT], texts).code == 0
    assert ids(copied) == "ce"
    ran = mixed(copied, [EXACT, bad("c")], texts)
    assert (ran.code, "1 document dropped" in ran.json["failed"][0]) == (1, True)


def test_with_the_sets_of_dedup(copied: Project) -> None:
    """Equal documents of which one is in a shard, and in a source, that a rule drops."""
    for shard, source in (("a", "bad"), ("b", "good"), ("c", "good")):
        rows = [{"id": f"{shard}{i}", "text": f"text {i % 3}", "source": source} for i in range(4)]
        write_rows(copied.documents / f"{shard}.jsonl.gz", rows)
    write_rows(copied.documents / "d.jsonl.gz", [document("d", "none like it")])
    copied.config["dedup"] = {"exact-0": {"kind": "exact"}}
    rules = [EXACT, {"drop": 'document.source == "bad"', "name": "bad"}]
    copied.config["mix"] |= {"attributes": ["exact-0"], "rules": rules}
    del copied.config["tag"]
    copied.ok("dedup")
    ran = copied("mix", "--json")
    assert (ran.code, "8 by 'exact_copies' (exact-0)" in ran.json["failed"][0]) == (1, True)
    copied.config["dedup"]["exact-0"]["when"] = 'document.source != "bad"'
    copied.ok("dedup", "--overwrite")
    assert copied.ok("mix", "--json").json["totals"]["kept"] == 4


@pytest.mark.parametrize("processes", [1, 2])
def test_in_the_pass(copied: Project, processes: int) -> None:
    rows = [{"id": f"{i}", "text": f"x exact={i - 1}" if i % 3 else "x"} for i in range(900)]
    path = write_rows(copied.root / "in.jsonl", rows)
    copied.config |= {"ingest": [{"format": "jsonl", "from": str(path), "source": "s"}], "processes": processes}
    copied.config["mix"]["rules"] = [EXACT]
    ran = copied.ok("run", "--json")
    assert (len(copied.output()), ran.json["mix"]["orphans"]) == (300, [])
    copied.config["mix"]["rules"].append(bad("300"))
    for arguments in ((), ("--per-shard", f"dataset={copied.root}/other", f"mix.output.path={copied.root}/out2")):
        for _ in range(2):
            copied("run", *arguments).fails(1, "got 2 documents dropped")


def test_values_that_name_no_document_are_refused(copied: Project) -> None:
    path = copied.root / "copies.py"
    path.write_text(TAGGER.replace('["s", word.partition("=")[2]]', "[word]"))
    write_rows(copied.documents / "0.jsonl.gz", [document("a", "exact=b")])
    copied.config["mix"]["rules"] = [EXACT]
    copied.ok("tag")
    for arguments in ((), ("--dry-run",)):
        copied("mix", *arguments).fails(1, "expected [source, id] as `duplicate_of`, got ['exact=b']", "0.jsonl.gz:1")


def test_on_s3(copied: Project, bucket: str) -> None:
    copied.config |= {"dataset": f"{bucket}/data"}
    path = write_rows(
        copied.root / "in.jsonl", [{"id": id, "text": text} for id, text in (("a", "x"), ("b", "exact=a"), ("c", "y"))]
    )
    copied.config["ingest"] = [{"format": "jsonl", "from": str(path), "source": "s"}]
    copied.config["mix"] |= {"rules": [EXACT, bad("a")], "output": {"format": "dolma", "path": f"{bucket}/out"}}
    copied("run").fails(1, "1 by 'exact_copies' (exact)")
    copied.config["mix"] |= {"rules": [EXACT]}
    copied.ok("run")
