"""What `toolkit dedup` says of near duplicates is what brute force over the texts says, but for what is missed."""

import itertools
import random
import shutil
from typing import Any

import pytest

from tests.marks import slow
from tests.pipeline.conftest import document, tree, write_rows
from tests.whole_corpus.making import dataset_in
from tests.whole_corpus.near.conftest import Near, edited, jaccard, kept_for, slow_shingles, vocabulary
from toolkit.whole_corpus.near import decisions
from toolkit.whole_corpus.near.comparison import read_shard
from toolkit.whole_corpus.near.minhash import PRESETS, Shingles
from toolkit.whole_corpus.records import Resolution, load_resolution, load_resolved

WORDS = vocabulary(4000)


def planted(seed: int, families: int = 150) -> list[str]:
    """Texts with copies of many similarities, half of the similar ones below 0.9, in no order."""
    random_ = random.Random(seed)
    found = []
    for _ in range(families):
        words = random_.choices(WORDS, k=random_.randint(100, 300))
        found.append(words)
        for share in random_.choices([0, 0.005, 0.01, 0.015, 0.017, 0.02, 0.022, 0.04], k=random_.choice([0, 1, 1, 2])):
            found.append(edited(words, round(share * len(words)), WORDS, random_))
    random_.shuffle(found)
    return [" ".join(words) for words in found]


def resolution(near: Near) -> Resolution:
    found = load_resolution(dataset_in(near.data), "near-0")
    assert found
    return found


def check_evidence(texts: list[str], values: list[dict[str, Any]], least: float = 0.8) -> None:
    """Nothing is removed without a kept document that is as similar as the set says, and as the threshold asks."""
    shingles = [slow_shingles(text) for text in texts]
    of = kept_for(values)
    members: dict[int, int] = {}
    for kept in of:
        if kept is not None:
            members[kept] = members.get(kept, 1) + 1
    for at, (kept, value) in enumerate(zip(of, values, strict=True)):
        if kept is None:
            assert value["jaccard"] is value["containment"] is None
            assert value["size"] == members.get(at, 1)
            assert value["cluster"] == (["s", f"d{at}"] if at in members else None)
            continue
        assert of[kept] is None
        assert value["jaccard"] == jaccard(shingles[at], shingles[kept]) >= least
        assert value["containment"] == len(shingles[at] & shingles[kept]) / len(shingles[at])
        assert (value["cluster"], value["size"]) == (value["duplicate_of"], members[kept])


def similar_pairs(texts: list[str], least: float = 0.8) -> dict[tuple[int, int], float]:
    shingles = [slow_shingles(text) for text in texts]
    holders: dict[Any, list[int]] = {}
    for at, each in enumerate(shingles):
        for shingle in each:
            holders.setdefault(shingle, []).append(at)
    pairs = {pair for each in holders.values() for pair in itertools.combinations(each, 2)}
    found = {(a, b): jaccard(shingles[a], shingles[b]) for a, b in pairs}
    return {pair: similarity for pair, similarity in found.items() if similarity >= least}


def test_planted_copies_are_found_and_nothing_else_is_removed(near: Near) -> None:
    texts = planted(1)
    near.write(texts)
    values = near.near()
    check_evidence(texts, values)
    pairs = similar_pairs(texts)
    of = kept_for(values)
    missed = [pair for pair in pairs if of[pair[0]] is None and of[pair[1]] is None]
    assert sum(similarity < 0.9 for similarity in pairs.values()) > len(pairs) / 2
    assert len(missed) <= 0.02 * len(pairs)
    # what is removed is what goes first come, first kept over the pairs that share a band
    expected: list[int | None] = []
    for at in range(len(texts)):
        others = [
            (-pairs[other, at], other) for other, kept in enumerate(expected) if kept is None and (other, at) in pairs
        ]
        found = [other for _, other in sorted(others) if (other, at) not in missed]
        expected.append(found[0] if found else None)
    assert of == expected


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["fineweb", "dolma3"])
def test_with_a_preset_as_many_pairs_are_found_as_its_curve_says(near: Near, preset: str) -> None:
    """No more pairs are missed than the upper end of the 99 % interval allows; pairs are those of brute force."""
    texts = planted(9, 400)
    near.write(texts)
    values = near.near(preset=preset)
    check_evidence(texts, values)
    of, pairs = kept_for(values), similar_pairs(texts)
    missed = sum(of[a] is None and of[b] is None for a, b in pairs)
    chances = [1 - PRESETS[preset].bands.probability(similarity) for similarity in pairs.values()]
    # a pair is missed if none of its bands is equal, unless another kept document is like one of both
    assert missed <= sum(chances) + 2.576 * sum(chance * (1 - chance) for chance in chances) ** 0.5 + 1
    assert sum(each is not None for each in of) > 250


@pytest.mark.slow
def test_the_bytes_are_the_same_for_any_memory_and_number_of_processes(near: Near) -> None:
    texts = planted(2, 60)
    near.write(texts, shards=5)
    near.near()
    notes = near.data / ".toolkit" / "dedup"
    found = []
    for memory, processes in (("100 MB", 1), ("60 kB", 1), ("14 kB", 2)):
        shutil.rmtree(notes)  # or else nothing would be found out again
        shutil.rmtree(near.attributes)
        near.config["processes"] = processes
        near.near(memory=memory)
        found.append((tree(near.attributes), resolution(near).counts, load_resolved(dataset_in(near.data), "near-0")))
    assert found[1:] == found[:1] * 2


def test_of_a_chain_the_ends_stay(near: Near) -> None:
    """Each text differs from the next by a little, the ends by more than is allowed."""
    words = vocabulary(2000, seed=3)[:300]
    texts = [" ".join(words[i : i + 200]) for i in (0, 20, 40, 60, 80)]
    near.write(texts)
    values = near.near(jaccard=0.75)
    check_evidence(texts, values, least=0.75)
    assert kept_for(values) == [None, 0, None, 2, None]


def test_documents_in_one_frame_stay(near: Near) -> None:
    """A template around a text of its own: 0.7 similar, each to each; unverified bands would take most of them."""
    frame = vocabulary(300, seed=4)
    texts = [" ".join([*frame[:150], *random.Random(i).choices(WORDS, k=55), *frame[150:]]) for i in range(60)]
    similarity = jaccard(slow_shingles(texts[0]), slow_shingles(texts[1]))
    assert 0.65 < similarity < 0.75
    near.write(texts)
    assert kept_for(near.near()) == [None] * 60
    unverified = kept_for(near.near(verify=False))
    assert sum(each is not None for each in unverified) > 30


@pytest.mark.slow
def test_ten_thousand_short_documents_stay_apart(near: Near) -> None:
    random_ = random.Random(5)
    texts = [" ".join(random_.choices(WORDS[:300], k=random_.randint(0, 12))) for _ in range(10_000)]
    near.write(texts)
    values = near.near()
    check_evidence(texts, values)
    for text, value in zip(texts, values, strict=True):
        if len(slow_shingles(text)) < 5:
            assert value == {"duplicate_of": None, "jaccard": None, "containment": None, "cluster": None, "size": 1}


def test_short_documents_are_never_duplicates(near: Near) -> None:
    """Nine words have five shingles of five words, and so has no text that says the same over and over."""
    nine, eight = "a b c d e f g h i", "a b c d e f g h"
    near.write([nine, nine, eight, eight, "", "", "again " * 100, "again " * 100])
    assert kept_for(near.near()) == [None, 0, *[None] * 6]


SCRIPTS = {
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "Thai": "กขคงจฉชซญดตถทธนบปผพฟภมยรลวสหอ",
    "Chinese": "一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所",
}


@pytest.mark.parametrize("script", ["Thai", *slow("Arabic", "Chinese")])
def test_scripts_are_compared_alike(near: Near, script: str) -> None:
    """Unrelated texts stay, copies with a few edits go: with spaces between words, and without."""
    random_ = random.Random(6)
    letters = SCRIPTS[script]
    words = ["".join(random_.choices(letters, k=random_.randint(2, 6))) for _ in range(800)]
    joint = " " if script == "Arabic" else ""
    texts = []
    for _ in range(40):
        text = random_.choices(words, k=200)
        texts += [joint.join(text), joint.join(edited(text, 2, words, random_))]
    near.write(texts)
    values = near.near()
    check_evidence(texts, values)
    assert kept_for(values) == [at - 1 if at % 2 else None for at in range(80)]


def test_the_document_that_is_kept_is_the_one_that_comes_first_by_keep(near: Near) -> None:
    text = " ".join(WORDS[:60])
    texts = [text, text + " and", text + " or", " ".join(WORDS[100:160])]
    near.write(texts, metadata=[{"n": n} for n in (1, 3, 3, 2)])
    assert kept_for(near.near()) == [None, 0, 0, None]
    assert kept_for(near.near(keep={"max": "len(document.text)"})) == [1, None, 1, None]
    assert kept_for(near.near(keep={"min": "0 - len(document.text)"})) == [1, None, 1, None]


def test_only_what_competes_is_compared_within_its_scope(near: Near) -> None:
    text = " ".join(WORDS[:60])
    near.write([text] * 6, source=["a", "b", "a", "b", "c", "a"])
    found = near.near(scope="source")
    assert kept_for(found) == [None, None, 0, 1, None, 0]
    assert kept_for(near.near(when="document.source != 'a'")) == [None, None, None, 1, 1, None]


def test_containment_is_a_further_condition(near: Near) -> None:
    """A document that says more than the kept one stays, one that says less goes."""
    words = WORDS[:200]
    texts = [" ".join(words[:180]), " ".join(words), " ".join(words[:170])]
    near.write(texts)
    assert kept_for(near.near()) == [None, 0, 0]
    assert kept_for(near.near(containment=0.95)) == [None, None, 0]


def test_without_verification_the_first_of_a_bucket_is_kept_and_no_similarity_is_said(near: Near) -> None:
    text = " ".join(WORDS[:60])
    near.write([text, " ".join(WORDS[60:130]), text])
    values = near.near(preset="fineweb", verify=False)
    assert near.ok("dedup", "--json").json["sets"]["near-0"]["counts"]["unverified"] == 1
    assert kept_for(values) == [None, None, 0]
    assert values[2]["jaccard"] is values[2]["containment"] is None
    assert values[2]["size"] == values[0]["size"] == 2


def test_documents_that_change_between_two_readings_are_an_error(near: Near, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(WORDS[:60])] * 3
    near.write(texts, shards=1)

    def late(work: Any, report: Any) -> list[str]:
        near.write(["other", *texts[1:]], shards=1)
        return read_shard(work, report)

    monkeypatch.setattr(decisions, "read_shard", late)
    near.config["dedup"] = {"near-0": {"kind": "near"}}
    near("dedup").fails(1, "got a file that has changed; run again")
    assert not list(near.attributes.rglob("*.gz"))


def test_what_was_decided_is_not_read_again(near: Near, monkeypatch: pytest.MonkeyPatch) -> None:
    """New shards give what a whole run gives; of old text only that of documents in a pair with new ones is read."""
    texts = planted(7, 60)
    near.config["dedup"] = {"near-0": {"kind": "near"}}
    near.write(texts, shards=6)
    near.ok("dedup", "--quiet")
    whole = tree(near.attributes)
    for path in (*near.attributes.rglob("*.gz"), *near.data.rglob(".toolkit")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    last = near.documents / "cc" / "s5.jsonl.gz"
    content = last.read_bytes()
    last.unlink()
    near.ok("dedup", "--quiet")
    read: list[str] = []
    sets = Shingles.of

    def counted(given: Any, size: Any) -> Shingles:
        read.extend(given)
        return sets(given, size)

    last.write_bytes(content)
    monkeypatch.setattr(Shingles, "of", counted)
    near.ok("dedup", "--quiet")
    assert tree(near.attributes) == whole
    new = {row["text"] for row in near.shard("cc/s5.jsonl.gz")}
    candidates = resolution(near).counts["candidates"]
    assert set(read) & new
    assert 0 < len(read) - len(new & set(read)) < candidates / 2


def test_of_an_earlier_resolution_that_has_lost_files_nothing_is_taken(near: Near) -> None:
    """As where a kill has ended its removal: of a shard without a file nothing would be a duplicate."""
    texts = [" ".join(WORDS[at : at + 60]) for at in (0, 60, 120, 0)]
    near.write(texts, shards=2)
    near.near()
    for path in near.data.rglob(".toolkit/dedup/near-0/decisions-*/*"):
        if path.name != "marks":
            path.unlink()
    write_rows(near.documents / "cc" / "s2.jsonl.gz", [document("d4", texts[1])])
    near.ok("dedup", "--quiet")
    assert kept_for(near.found()) == [None, None, None, 0, 1]


def families(seed: int) -> list[str]:
    """Texts of few families, whose members resemble one another more or less, in no order."""
    random_ = random.Random(seed)
    found = []
    for _ in range(12):
        words = random_.choices(WORDS, k=random_.randint(60, 150))
        for _ in range(random_.randint(1, 9)):
            found.append(" ".join(words))
            words = edited(words, random_.choice([0, 0, 1, 2, 3]), WORDS, random_)  # of the one before: chains
    random_.shuffle(found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "in_order", "options"),
    [
        (1, True, {}),
        (2, False, {"keep": {"max": "document.chars"}}),
        *slow(*((seed, True, {}) for seed in range(3, 6))),
        *slow(*((seed, seed % 2 == 0, {"keep": {"min": "document.chars % 7"}}) for seed in range(6, 9))),
        *slow(*((seed, seed % 2 == 0, {"containment": 0.95, "memory": 2_000_000}) for seed in range(9, 11))),
        *slow(*((seed, seed % 2 == 0, {"verify": False}) for seed in range(11, 13))),
        *slow(*((seed, seed % 2 == 0, {"against": "other"}) for seed in range(13, 16))),
        *slow(*((seed, seed % 2 == 0, {"store_shingles": True}) for seed in range(16, 18))),
    ],
)
def test_a_corpus_that_grows_has_what_a_whole_one_has(
    near: Near, monkeypatch: pytest.MonkeyPatch, seed: int, in_order: bool, options: dict[str, Any]
) -> None:
    """Shard by shard; and of old texts only those are read that were kept, if the new ones come behind."""
    random_ = random.Random(seed)
    texts = families(seed)
    if "against" in options:
        rows = [document(f"o{i}", each, "old") for i, each in enumerate(families(seed)[:9])]
        write_rows(near.root / "other" / "documents" / "x" / "a.jsonl.gz", rows)
        options = {"against": str(near.root / "other")}
    near.config["dedup"] = {"near-0": {"kind": "near", **options}}
    near.write(texts, shards=6)
    near.ok("dedup", "--quiet")
    whole = tree(near.attributes)
    for path in (*near.attributes.rglob("*.gz"), *near.data.rglob(".toolkit")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shards = {path: path.read_bytes() for path in sorted((near.documents / "cc").iterdir())}
    left = list(shards)
    if not in_order:
        random_.shuffle(left)
    for path in left:
        path.unlink()
    read: list[str] = []
    sets = Shingles.of

    def counted(given: Any, size: Any) -> Shingles:
        read.extend(given)
        return sets(given, size)

    monkeypatch.setattr(Shingles, "of", counted)
    kept: set[str] = set()
    while left:
        for path in left[: (number := random_.randint(1, 2))]:
            path.write_bytes(shards[path])
        new = {row["text"] for path in left[:number] for row in near.shard(f"cc/{path.name}")}
        left = left[number:]
        read.clear()
        near.ok("dedup", "--quiet")
        if in_order and not options:
            assert set(read) <= kept | new
        names = sorted(path.name for path in (near.documents / "cc").iterdir())
        of = [row["text"] for name in names for row in near.shard(f"cc/{name}")]
        kept = {text for text, value in zip(of, near.found(), strict=True) if not value["duplicate_of"]}
    assert tree(near.attributes) == whole


def test_what_another_dataset_has_is_a_duplicate_of_that(near: Near) -> None:
    """Documents of the other dataset stay, all of them, and get no values."""
    text = " ".join(WORDS[:60])
    near.write([text, text + " and", " ".join(WORDS[60:130])])
    other = near.root / "other"
    rows = [document(f"o{i}", each, "old") for i, each in enumerate([text + " and", text + " and", text])]
    write_rows(other / "documents" / "x" / "a.jsonl.gz", rows)
    before = tree(other, bookkeeping=True)
    values = near.near(against=str(other))
    assert [each["duplicate_of"] for each in values] == [["old", "o2"], ["old", "o0"], None]
    assert [(each["jaccard"], each["size"]) for each in values] == [(1.0, 2), (1.0, 2), (None, 1)]
    assert tree(other, bookkeeping=True) == before


def test_a_pair_is_explained_by_what_differs(near: Near) -> None:
    words = WORDS[:80]
    near.write([" ".join(words), " ".join([*words[:40], "new", *words[41:]]), " ".join(WORDS[80:160])])
    near.near()
    ran = near.ok("dedup", "--explain", "d1")
    assert "near-0: d1 (s) is a duplicate of d0 (s)\n  jaccard 0.8765, containment 0.9342, size 2\n" in ran.out
    assert f"{' '.join(words[36:40])} [-{words[40]}-]{{+new+}} {' '.join(words[41:45])}" in ran.out
    assert near.ok("dedup", "--explain", "d0").out == ran.out
    assert "d2 is not a duplicate, and has none" in near.ok("dedup", "--explain", "d2").out
    assert near("dedup", "--explain", "d3").code == 2


def test_who_loses_most_is_told(near: Near) -> None:
    """A source, a host and a language of which more than a part is removed; a single document is nobody's loss."""
    text, other = " ".join(WORDS[:60]), " ".join(WORDS[60:120])
    hosts = ["a.example", "b.example", "b.example", "c.example", "c.example", "c.example"]
    near.write(
        [text, text, text, other, other, " ".join(WORDS[120:180])],
        source=["x", "y", "y", "x", "x", "x"],
        metadata=[{"warc_headers": {"warc-target-uri": f"https://{host}/page"}} for host in hosts],
    )
    near.config["dedup"] = {"near-0": {"kind": "near"}}
    out = near.ok("dedup", "--quiet").out
    warned = [line.split(",")[0] for line in out.splitlines() if "warning" in line]
    assert warned == [
        "near-0: warning: of 2 documents of the host b.example",
        "near-0: warning: of 2 documents of the source y",
    ]
    assert "cluster of 3: d0 is kept, not d1 (1.000), d2 (1.000)" in out


@pytest.mark.parametrize("texts", [[""], ["a b", "a b"], [" ".join(WORDS[:60]), " ".join(WORDS[60:120])]])
def test_where_nothing_is_like_anything_all_stays(near: Near, texts: list[str]) -> None:
    near.write(texts)
    assert kept_for(near.near()) == [None] * len(texts)


@pytest.mark.slow
def test_a_component_that_memory_cannot_order_is_an_error_that_says_so(near: Near) -> None:
    near.write([" ".join(WORDS[:60])] * 30)
    near.config["dedup"] = {"near-0": {"kind": "near", "memory": "1 kB"}}
    near("dedup").fails(1, "expected at most 5 documents that belong together", "set at least `memory: 1 MB`")
