"""What is counted for a dataset card: the same numbers as by hand, and texts of others that are nothing but text."""

import itertools
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.inspect.test_card import card, section
from tests.pipeline.conftest import Project, attributes, document, write_rows
from toolkit.aggregate import drawing
from toolkit.describe import card_numbers
from toolkit.describe.card import TITLES
from toolkit.distribution import missing_extra

ZWNJ = "\u200c"

HOSTILE = [
    "```\n## Rules\n<!-- toolkit: end x -->\n<!-- toolkit: keep x -->\n---\nlanguage: xx\n---",
    "</code></pre><script>alert(1)</script>\n<img src=x onerror=alert(1)> &lt; [a](javascript:alert(1))",
    "\u202egnp.exe\u2066 \x1b[31mred\x07 \x00 \u2028 ````` \ufeff \U000e0041",
    "می\u200cخواهم " * 200,
    "| a | b |\n| - | - |\n" + "x" * 5000,
]


def rows_of(text: str) -> list[list[str]]:
    """The rows of the first table in a text."""
    lines = text[text.index("\n| ") + 1 :].splitlines()
    table = list(itertools.takewhile(lambda line: line.startswith("|"), lines))
    found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    return [found[0], *found[2:]]


def part(folder: Path, title: str) -> str:
    """A section inside the statistics."""
    return section(folder, "Statistics").partition(f"### {title}\n")[2].partition("\n### ")[0]


@pytest.fixture
def scored(project: Project) -> Project:
    """A dataset with scores, tokens and addresses, mixed by thresholds that differ by language."""
    probs = {"fi": [0.1, 0.4, 0.6, 0.9], "sr": [0.2, 0.7, 0.95, 0.99]}
    documents, values = [], []
    for label, some in probs.items():
        for i, prob in enumerate(some):
            text = f"{label} {i} me@example.org and you@example.org" if i == 3 else f"{label} {i}" * (i + 1)
            url = f"https://host{i % 2}.example/{label}"
            documents.append(document(f"{label}-{i}", text, metadata={"url": url}))
            values.append(attributes(f"{label}-{i}", {"language": {"label": label, "prob": prob}}))
    write_rows(project.documents / "a.jsonl.gz", documents)
    write_rows(project.attributes / "said" / "a.jsonl.gz", values)
    project.config |= {
        "tag": {"pii-0": ["emails", "ip_addresses"]},
        "mix": {
            "attributes": ["said", "pii-0"],
            "label": "language.label",
            "parameters": {"lowest": 0.3},
            "languages": {"sr": {"lowest": 0.8}},
            "rules": [{"drop": "language.prob < lowest", "name": "unsure"}],
            "output": {"format": "dolma", "path": str(project.out), "by": "language"},
        },
    }
    project.ok("tag")
    project.ok("mix")
    return project


def test_scores_thresholds_and_personal_data_are_those_of_the_documents(scored: Project) -> None:
    scored.config["mix"]["rules"].append({"replace": "emails", "by": "|||EMAIL|||"})
    del scored.config["mix"]["output"]["by"]  # which no longer describes the text
    scored.ok("mix")
    scored.ok("card")
    scores = {row[0]: row[1:] for row in rows_of(part(scored.out, "Scores"))[1:]}
    assert scores["`language.prob`"] == ["8", "0.0 %", "0.1", "0.1", "0.2", "0.6", "0.9", "0.99", "0.99"]
    marks = rows_of(part(scored.out, "Scores").partition("Thresholds of the rules")[2])
    assert marks[1:] == [
        ["`unsure`", "`language.prob < 0.3`", "all", "1", "25.0 %"],
        ["`unsure`", "`language.prob < 0.8`", "Serbian", "2", "50.0 %"],
    ]
    personal = part(scored.out, "Personal data")
    assert rows_of(personal)[1:] == [["`emails`", "2", "4"], ["`ip_addresses`", "0", "0"]]
    replaced = rows_of(personal.partition("What the mix replaced")[2])
    assert replaced[1:] == [["`emails`", "`emails`", "2", "4", str(len("me@example.orgyou@example.org") * 2)]]
    assert "Not replaced: `ip_addresses`." in personal
    assert "emails[]" not in part(scored.out, "Scores")


def test_lengths_hosts_and_names(scored: Project) -> None:
    scored.ok("card")
    texts = {row["id"]: row["text"] for row in scored.output()}
    lengths = {row[2]: row for row in rows_of(part(scored.out, "Lengths"))}
    of_fi = sorted(len(text) for id_, text in texts.items() if id_.startswith("fi"))
    assert lengths["`fi`"][:4] == ["Finnish", "Latin", "`fi`", str(len(of_fi))]
    assert (lengths["`fi`"][4], lengths["`fi`"][-1]) == (str(of_fi[0]), str(of_fi[-1]))
    assert lengths["`sr`"][:2] == ["Serbian", "Cyrillic"]
    hosts = Counter(f"`host{int(id_[-1]) % 2}.example`" for id_ in texts)
    assert {row[0]: int(row[1]) for row in rows_of(part(scored.out, "Hosts"))[1:-1]} == hosts
    assert scored.ok("card", "--dry-run", "about.scores=false").out.count("### Scores") == 0


def test_samples_are_documents_and_can_be_left_out(scored: Project) -> None:
    told = scored.ok("card").out
    assert "the card shows texts of 3 documents; about.examples=0: none" in told
    shown = re.findall(r"id `(.+?)`:\n\n> ```text\n((?:> .*\n)+?)> ```", section(scored.out, "Samples") + "\n")
    assert len(shown) == 3
    assert {id_[:2] for id_, _ in shown} == {"fi", "sr"}
    texts = {row["id"]: row["text"] for row in scored.output()}
    for id_, lines in shown:
        assert texts[id_] == "\n".join(line[2:] for line in lines.splitlines())
    scored.ok("card", "about.examples=0")
    assert not {"Samples", "Example"} & set(re.findall(r"^## (.+)$", card(scored.out), re.MULTILINE))
    assert not any(text in card(scored.out) for text in texts.values())


@pytest.mark.parametrize("format_", ["dolma", "text"])
def test_no_text_of_a_document_is_more_than_text(project: Project, format_: str) -> None:
    rows = [
        document(f"{i} ` \x1b|<b>", text, metadata={"url": f"https://a`|<b>{i}.example/\u202e", "l": "x-odd"})
        for i, text in enumerate(HOSTILE * 2)
    ]
    write_rows(project.documents / "a.jsonl.gz", rows)
    output: dict[str, Any] = {"format": format_, "path": str(project.out)}
    output |= {"identification": "metadata.l"} if format_ == "text" else {}
    named = {"drop": "metadata.l is None", "name": "unnamed"}
    project.config |= {"mix": {"rules": [named], "output": output}, "about": {"examples": len(rows), "scores": False}}
    project.ok("mix")
    project.ok("card")
    before = card(project.out)
    project.ok("card")  # its marks are read
    assert card(project.out) == before
    project.ok("validate")
    assert [title for title in re.findall(r"^## (.+)$", before, re.MULTILINE) if title not in TITLES] == []
    control = {c for c in before if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") and c != "\n"}
    assert control <= {ZWNJ}
    assert "می\u200cخواهم" in before
    outside = re.sub(r"^(|> )(`{3,})\w*\n.*?^\1\2$", "", before, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", outside)
    assert not re.search(r"<(script|img|b>|/)|javascript|alert|onerror", outside)


@pytest.mark.slow
def test_the_picture_is_drawn_once_and_is_told_where_it_cannot_be(
    scored: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    scored.ok("card")
    file = scored.out / card_numbers.PICTURE
    first, text = file.read_bytes(), card(scored.out)
    assert first.startswith(b"\x89PNG")
    assert "![Size of the text and length of documents by language: " in text
    file.unlink()
    assert scored("card", "--check").code == 1
    assert "card.png beside it" in scored("validate").out
    scored.ok("card")
    assert file.read_bytes() == first
    monkeypatch.setattr(drawing, "is_installed", lambda: False)
    scored.ok("card", "--check")  # it shows these numbers, whoever has drawn it
    assert str(missing_extra("plots", "pictures", "matplotlib")) not in scored.ok("card").out
    scored.config["mix"]["rules"] = [{"drop": "language.prob < 2 * lowest", "name": "unsure"}]
    scored.ok("mix")
    told = scored.ok("card").out
    assert f"no picture: {missing_extra('plots', 'pictures', 'matplotlib')}" in told
    assert card_numbers.PICTURE not in card(scored.out)
    assert not file.exists()
    scored.ok("card", "--check")
    scored.ok("validate")


def test_a_dataset_and_a_release_have_numbers_too(scored: Project) -> None:
    scored.ok("card", "--of", "dataset")
    assert rows_of(part(scored.data, "Scores"))[1][:3] == ["`language.prob`", "8", "0.0 %"]
    assert rows_of(part(scored.data, "Personal data"))[1] == ["`emails`", "2", "4"]
    release = scored.root / "release"
    (scored.out / "documents").rename(release)
    scored.run("card", release)
    assert "### Lengths" in card(release)
    assert "### Scores" not in card(release)
