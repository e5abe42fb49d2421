"""What a beginner writes, and the way out that each message names."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, write_rows


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["mix", "--dryrun", "-c", "c.yaml"], "did you mean '--dry-run'?"),
        (["ingset", "-c", "c.yaml"], "expected a command, got 'ingset'; did you mean 'ingest'?"),
        (["run", "c.yaml"], "write toolkit run -c c.yaml"),
        (["c.yaml"], "write toolkit run -c c.yaml"),
    ],
)
def test_a_command_line_that_is_refused_names_the_way_out(run: Run, words: list[str], way_out: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert way_out in ran.err


def test_options_may_stand_before_the_command(small: Project, run: Run) -> None:
    behind = small.ok("mix", "--dry-run", "--quiet")
    before = run("--quiet", "-c", small.yaml, "mix", "--dry-run")
    assert (before.code, before.out, before.err) == (0, behind.out, "")


def test_functions_of_texts_decide_over_attributes_and_fields(project: Project) -> None:
    urls = ["HTTP://A.org/x.PDF", "https://b.de/y.html", "ftp://b.de/zürich", None]
    rows = [document(f"d{i}", "text", url=url) for i, url in enumerate(urls)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    expected = {
        'document.url is not None and lower(document.url) == "http://a.org/x.pdf"': ["d0"],
        'document.url is not None and startswith(document.url, "http")': ["d1"],
        'document.url is not None and endswith(lower(document.url), ".pdf")': ["d0"],
        'document.url is not None and matches(document.url, "b[.]de/.*[ü]r")': ["d2"],
        'document.url is not None and matches(document.url, "(?i)^http.*(pdf|html)$")': ["d0", "d1"],
    }
    for rule, ids in expected.items():
        project.config["mix"] = {"rules": [{"keep": rule}], "output": {"format": "dolma", "path": str(project.out)}}
        project.ok("mix")
        assert [row["id"] for row in project.output()] == ids, rule


def test_an_output_is_divided_by_a_text_and_by_the_full_name_of_a_key(pipeline: Project, tmp_path: Path) -> None:
    pipeline.config["mix"] |= {"rules": [{"drop": "language.label is None"}], "output": {}}
    pipeline.ok("ingest")
    pipeline.ok("tag")
    written: list[Any] = []
    for by in ("language", "language.label", "language-0.language.label", "language-0.language"):
        out = tmp_path / by
        pipeline.config["mix"]["output"] = {"format": "dolma", "path": str(out), "by": by}
        pipeline.ok("mix")
        written.append({path.name: path.read_bytes() for path in out.rglob("*.gz") if ".toolkit" not in path.parts})
    assert len(written[0]) > 10
    assert written[1:] == written[:1] * 3


def test_an_output_by_a_set_that_is_not_joined_is_refused(small: Project) -> None:
    small.config["tag"] = {"shape": "noise"}
    small.ok("tag", "--overwrite")
    small.config["mix"] |= {"attributes": ["shape"], "rules": []}
    small.config["mix"]["output"]["by"] = "shape.noise.noise"
    small("mix").fails(2, "got 'shape', the name of a set; write noise.noise")
