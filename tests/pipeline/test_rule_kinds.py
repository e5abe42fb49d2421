"""A kind of rule is one file: it is found in its folder, and everything that deals with rules asks it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, tree, write_rows
from toolkit.describe.provenance import mixed_sets
from toolkit.inspect.targets import recorded_format
from toolkit.mix.publication import load_manifest
from toolkit.rules import kinds
from toolkit.rules.kinds import all_forms, all_kinds, kind_called
from toolkit.rules.rule import Role

SHORTEN = '''
"""``{shorten: 10}``: the text ends behind so many characters."""


from toolkit.rules.rule import CompiledRule
from toolkit.rules.rule import Form, Rule
from toolkit.text.editing import Edit


class ShortenForm(Form):
    shorten: int

    KEY = "shorten"

    def rules(self, place, base):
        if self.shorten < 0:
            raise place.error(("shorten",), f"expected a number of characters, got {self.shorten}")
        return [Shorten(name=self.name or f"shorten to {self.shorten}", chars=self.shorten, when=self.when)]


class Shorten(Rule):
    chars: int

    FORM = ShortenForm

    @property
    def expressions(self):
        return [f"document.chars > {self.chars}", *super().expressions]

    def compile(self, compiler):
        names = compiler.names_for(self)
        longer = compiler.checked(self, names, self.expressions[0]).code
        condition = compiler.condition(self, names)
        return Shortens(self, names, compiler.function, f"{longer} and {condition or True}", self.chars)


class Shortens(CompiledRule, frozen=True):
    end: int

    def edits(self, document, values, past_end):
        return [Edit(self.end, len(document.text), "")] if self.holds(values) else []

    def preview(self, values):
        return (1, values[-1].chars - self.end) if self.holds(values) else (0, 0)

    def verdict(self, values):
        return f"ends it at {self.end}" if self.holds(values) else "leaves it as it is"
'''


@pytest.fixture
def mixed(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose mix has a rule of a kind that is a file in the folder of kinds, which the test adds."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "shorten.py").write_text(SHORTEN)
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folder)])
    all_kinds.cache_clear()
    write_rows(
        project.documents / "a.jsonl.gz", [document("a", "123456789"), document("b", "12"), document("c", "1234")]
    )
    project.config["mix"] = mix(project.out, {"shorten": 3, "when": 'document.id != "c"'})
    yield project
    all_kinds.cache_clear()


def mix(out: Path, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"rules": list(rules), "output": {"format": "dolma", "path": str(out)}}


def test_a_new_kind_is_one_file_in_the_folder_and_nothing_else(mixed: Project) -> None:
    effect = {
        "documents": 1,
        "chars": 6,
        "reached": 3,
        "spans": 1,
        "nulls": 0,
        "repeated": 0,
        "copies": 0,
        "name": "shorten to 3",
        "kind": "shorten",
    }
    preview = mixed.ok("mix", "--dry-run", "--json").json
    assert preview["rules"] == [effect | {"stream": "", "group": "", "only": None}]
    assert "edits 1 spans" in mixed.ok("mix", "--dry-run").out
    explained = mixed.ok("mix", "--explain", "a", "--json").json["documents"][0]
    assert explained["steps"] == [
        {"rule": "shorten to 3", "verdict": "ends it at 3", "values": {"document.chars": 9, "document.id": "a"}}
    ]
    other = mixed.root / "other.yaml"
    other.write_text(mixed.yaml.read_text().replace('"shorten": 3', '"drop": "document.chars > 3"'))
    compared = mixed.ok("mix", "--compare", other, "--json").json
    assert compared["lost"] == {'document.chars > 3, when document.id != "c"': 1}
    assert mixed.ok("mix", "--json").json["rules"] == preview["rules"]
    assert [row["text"] for row in mixed.output()] == ["123", "12", "1234"]
    mixed.ok("validate")
    mixed.config["mix"] = mix(mixed.out, {"group": "g", "rules": [{"shorten": 4, "name": "x"}]})
    assert mixed.ok("mix").out.startswith("3 documents, 3 kept")
    assert [row["text"] for row in mixed.output()] == ["1234", "12", "1234"], "its options are among the settings"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"shorten": "much"}, "config.yaml:1: mix.rules[0].shorten: expected a whole number, got 'much'"),
        ({"shorten": -1}, "config.yaml:1: mix.rules[0].shorten: expected a number of characters, got -1"),
        ({"shorten": 3, "to": 1}, "config.yaml:1: mix.rules[0].to: unknown option 'to' of the rule 'shorten'"),
        ({"shoten": 3}, "did you mean 'shorten'?"),
        (
            {"shorten": 3, "when": "document.id.ic == 1"},
            "config.yaml:1: rule 'shorten to 3': expected an object with the field ic",
        ),
    ],
)
def test_errors_of_a_new_kind_name_their_place(mixed: Project, rule: dict[str, Any], message: str) -> None:
    mixed.config["mix"] = mix(mixed.out, rule)
    mixed("mix").fails(2, message)
    assert not mixed.out.exists()


def test_each_kind_has_what_it_is_asked_for() -> None:
    listed = all_forms()
    assert len(listed) > 10
    assert len({(form.KEY, form.WORD) for form in listed}) == len(listed), "entries can be told apart"
    for form in listed:
        assert form.KEY in form.__struct_fields__
        assert any(each.KEY == form.KEY and not each.WORD for each in listed)
    assert {kind.__name__ for kind in all_kinds() if kind.FORM is None} == {"Budget", "EditText"}, (
        "sections of their own"
    )
    assert kind_called("budget").ROLE.drops
    assert kind_called("cut lines").ROLE is Role.EDITS
    assert kind_called("of another version").ROLE is Role.EDITS


# Rules that are a function in Python: what they decide, what their errors name, and that an edit counts.

FUNCTION = """
def short(document, attributes):
    return len(document.text) < 10 and attributes["noise"]["chars"] >= 0 and document.source == "s"
"""


@pytest.fixture
def ruled(small: Project) -> Project:
    """The small data set with a rule by a function beside the configuration."""
    (small.root / "my.py").write_text(FUNCTION)
    small.config["mix"]["rules"] = [{"drop": "python", "function": "my.py:short", "name": "brief"}]
    return small


def test_a_function_drops_or_keeps(ruled: Project) -> None:
    texts = {
        row["text"]
        for path in ruled.documents.rglob("*.gz")
        for row in ruled.shard(str(path.relative_to(ruled.documents)))
    }
    ruled.ok("mix")
    dropped = {row["text"] for row in ruled.output()}
    assert dropped == {text for text in texts if len(text) >= 10}
    ruled.config["mix"]["rules"] = [{"keep": "python", "function": "my.py:short", "when": "noise.chars > 0"}]
    ruled.ok("mix")
    assert {row["text"] for row in ruled.output()} == {text for text in texts if not text or len(text) < 10}


@pytest.mark.slow
def test_the_same_bytes_from_run_and_from_two_processes(ruled: Project, tmp_path: Path) -> None:
    ruled.ok("mix")
    one = tree(ruled.out)
    ruled.config |= {"executor": {"type": "local"}, "processes": 2}
    ruled.config["mix"]["output"]["path"] = str(tmp_path / "two")
    ruled.ok("mix")
    assert tree(tmp_path / "two") == one


def test_an_edited_function_is_run_again_and_a_comment_is_none(ruled: Project) -> None:
    ruled.ok("mix")
    (ruled.root / "my.py").write_text("# a comment\n" + FUNCTION)
    before = len(ruled.output())
    written = {path: path.stat().st_ino for path in ruled.out.rglob("*.gz")}
    ruled.ok("mix")
    assert {path: path.stat().st_ino for path in ruled.out.rglob("*.gz")} == written
    (ruled.root / "my.py").write_text(FUNCTION.replace("< 10", "< 20"))
    ruled.ok("mix")
    assert len(ruled.output()) < before


def test_a_dry_run_says_that_it_reads_the_text(ruled: Project) -> None:
    ruled.ok("mix", "--dry-run").shows("so the documents were read with their text", "brief")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 // 0 > 0", "my.py:3: ZeroDivisionError"),
        ("return len(document.text)", "my.py:2: expected True or False from"),
        ("return __import__('json').loads(document.id)", "my.py:3: JSONDecodeError"),
        ("return document.adress", "my.py:3: AttributeError"),
        ("import sys; sys.exit(3)", "my.py:3: SystemExit: 3"),
    ],
)
def test_an_error_names_file_row_and_document(ruled: Project, body: str, message: str) -> None:
    (ruled.root / "my.py").write_text(f"\ndef short(document, attributes):\n    {body}\n")
    ruled("mix").fails(1, "rule 'brief'", message, "b.jsonl.gz:1: ", "(document 'b-1')")
    assert ruled.output() == []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("my.py:shrt", "expected a function shrt in"),
        ("your.py:short", "expected a Python file, got none there"),
        ("odd.py:one", "odd.py:1: expected a function of (document, attributes), got (document): too many"),
        ("odd.py:three", "odd.py:3: expected a function of (document, attributes), got (a, b, c): missing a"),
        (
            "odd.py:later",
            "odd.py:5: expected a function of (document, attributes) that returns True or False, got a co",
        ),
        ("my.py", "expected the file and its function, such as my.py:function"),
    ],
)
def test_a_function_that_is_not_there_or_cannot_be_called_is_refused(
    ruled: Project, function: str, message: str
) -> None:
    odd = ("def one(document):", "def three(a, b, c):", "async def later(document, attributes):")
    (ruled.root / "odd.py").write_text("".join(f"{head}\n    return True\n" for head in odd))
    ruled.config["mix"]["rules"] = [{"drop": "python", "function": function}]
    ruled("mix", "--dry-run").fails(2, "mix.rules[0].function", message)


def test_the_lineage_has_all_sets_that_a_function_may_read(ruled: Project) -> None:
    ruled.ok("mix")
    manifest = load_manifest(str(ruled.out))
    assert manifest
    assert {each.set for each in mixed_sets(manifest, recorded_format(manifest.settings).writer())} == {"shape-0"}
