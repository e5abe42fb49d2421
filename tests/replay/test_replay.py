"""The replay reports each of ten changes, and nothing where there is none; its tables have what they promise."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.replay import cases
from tests.replay.__main__ import Replay, main
from tests.replay.comparing import Expected, of_steps, read_expected, report
from tests.replay.planted import CHANGES, plugin
from tests.replay.recording import Contents, Recording, Step
from toolkit import command_options

NOTHING = "nothing"
REPORTED = {
    "a byte of a text": "content data/quickstart/documents",
    "an order of rows": "order of lines of content data/quickstart/documents",
    "an order of keys": "content data/quickstart/attributes/shape-0",
    "a key of JSON": "key $.mix",
    "a type": "type $.mix.totals.kept",
    "an exit code": "status",
    "a message": "message stderr:1",
    "a missing file": "file data/quickstart/oscar",
    "a count": "value $.mix.totals.kept",
    "the last digit of an attribute": "content data/quickstart/attributes/shape-0",
}
"""How the report of each change begins."""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Recording], Contents]:
    """What the quickstart and some refusals give, without and with each change."""
    folder = tmp_path_factory.mktemp("replay")
    contents = Contents(folder / "contents")
    found = [case for case in cases.cases(ROOT) if case.place == "disk" and case.processes == 1]
    small = [case for case in found if case.name in ("configs/quickstart.yaml", "refusals 200")]
    assert len(small) == 2
    plugins = {name: plugin(folder / "plugins" / name, name) for name in CHANGES}
    trees = {name: (ROOT, plugins.get(name)) for name in ("base", NOTHING, *CHANGES)}
    selected = [(case, case.wanted([{"run", "refusals"}])) for case in small]
    return Replay(selected, folder / "scratch", contents, 2).record(trees), contents


@pytest.mark.long
@pytest.mark.parametrize("name", CHANGES)
def test_a_planted_change_is_reported(name: str, recordings: tuple[dict[str, Recording], Contents]) -> None:
    found, contents = recordings
    text, count = report(found["base"], found[name], contents, [])
    assert count > 0
    assert f"\n{REPORTED[name]}" in f"\n{text}", text


@pytest.mark.long
def test_the_same_twice_has_no_differences(recordings: tuple[dict[str, Recording], Contents]) -> None:
    found, contents = recordings
    assert sum(len(step.files) for steps in found["base"].cases.values() for step in steps) > 20
    text, count = report(found["base"], found[NOTHING], contents, [])
    assert count == 0, text


def test_every_command_has_forms_with_json() -> None:
    lines = cases.commands(1)
    assert {line.command for line in lines} >= set(command_options.names())
    with_json = {line.command for line in lines if "--json" in line.arguments}
    assert set(command_options.names()) - with_json == {"view"}, "it serves until it is ended"


@pytest.mark.slow
def test_every_configuration_and_page_is_a_case_in_each_place() -> None:
    found = {(case.name, case.place, case.processes) for case in cases.cases(ROOT)}
    recipes = {f"configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")}
    pages = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "docs").glob("*.md")
        if "\n```yaml\ndataset:" in path.read_text(encoding="utf-8")
    }
    for name in recipes | pages:
        assert {each[1:] for each in found if each[0] == name} == {
            (place, processes) for place in cases.PLACES for processes in cases.PROCESSES
        }, name


def _step(**more: object) -> Step:
    return Step("mix", **{"status": 0, "output": {"rows": 4, "sets": ["a", "b"]}, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("new", "shown"),
    [
        ({"status": 1}, "status"),
        ({"output": {"rows": 5, "sets": ["a", "b"]}}, "value $.rows"),
        ({"output": {"rows": 4.0, "sets": ["a", "b"]}}, "type $.rows"),
        ({"output": {"sets": ["a", "b"], "rows": 4}}, "order of keys $"),
        ({"output": {"rows": 4, "sets": ["a"]}}, "length $.sets"),
        ({"output": {"row": 4, "sets": ["a", "b"]}}, "key $.rows"),
        ({"error": "error: wrong\n"}, "message stderr:1"),
        ({"files": {"a.jsonl": None}}, "file a.jsonl"),
    ],
)
def test_differences_name_their_place(new: dict[str, object], shown: str, tmp_path: Path) -> None:
    first, *_ = of_steps(_step(), _step(**new), Contents(tmp_path))
    assert str(first).startswith(shown)


def test_the_first_differing_line_of_a_file_is_shown(tmp_path: Path) -> None:
    contents = Contents(tmp_path)
    one, other = (contents.add(text) for text in (b"a\nb\nc\n", b"a\nB\nc\n"))
    (found,) = of_steps(_step(files={"a.txt": one}), _step(files={"a.txt": other}), contents)
    assert (found.place, found.old, found.new) == ("a.txt:2 (1 of 3 lines)", "b", "B")


def test_expected_differences_do_not_hide_others(tmp_path: Path) -> None:
    path = tmp_path / "expected.yaml"
    path.write_text(
        "- {matches: 'value \\$\\.rows', reason: rows are counted anew}\n- {matches: never, reason: gone}\n"
    )
    old, new = Recording({"case": [_step()]}), Recording({"case": [_step(status=1, output={"rows": 5, "sets": ["a"]})]})
    text, count = report(old, new, Contents(tmp_path), read_expected(path))
    assert count == 2
    assert "expected: rows are counted anew: 1" in text
    assert "expected: gone: did not occur" in text
    assert report(old, new, Contents(tmp_path), [Expected(read_expected(path)[0].matches, "")])[1] == 2


def test_an_unknown_word_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="expected a commit"):
        main(["--base", "no-such-commit"])
