"""A mix with repeats, a budget and a shuffle: the same bytes after kills at any moment; the recipe that ships."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import Project, read_rows, tree
from tests.recipes import tree as tree_at
from tests.storage.conftest import bucket, seaweed  # noqa: F401  # fixtures
from toolkit.config import settings
from toolkit.storage.paths import join


def recipe(root: Path, run: Run, *, at: str = "", tokens: str = "20 k", **more: Any) -> Project:
    """The recipe, with its dataset and its output below a root, or elsewhere."""
    pytest.importorskip("tokenizers", reason="tokens need tokenizers, an extra")
    root.mkdir(exist_ok=True)
    config = settings.load(str(ROOT / "configs" / "training-mix.yaml")).value
    config |= {"dataset": join(at or str(root), "data"), "processes": 1, **more}
    config["mix"]["output"]["path"] = join(at or str(root), "out")
    config["mix"]["budget"]["tokens"] = tokens
    return Project(root, run, config)


def values(project: Project, set_: str) -> dict[tuple[str, str], Any]:
    """The attributes of each document in a set."""
    return {
        (row["source"], row["id"]): row["attributes"]
        for path in (project.data / "attributes" / set_).rglob("*.jsonl.gz")
        for row in read_rows(path)
    }


@pytest.mark.slow
def test_the_recipe_repeats_by_quality_within_its_budget(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    project = recipe(tmp_path, run)
    assert [entry["source"] for entry in project.config["ingest"]] == ["crawl", "letters", "answers"]
    project.ok("run")
    ranks, tokens, languages = (values(project, name) for name in ("quality-0", "tokens-0", "language-0"))
    assert Counter(source for source, _ in ranks) == {"crawl": 43, "letters": 10, "answers": 8}
    counted = project.ok("mix", "--json").json["budget"]["groups"]
    available = {each["group"]: each["available"] for each in counted}
    powers = {group: (n / sum(available.values())) ** 0.3 for group, n in available.items()}
    largest, wanted = Counter[str](), 0.0
    for key, values_ in tokens.items():
        label = languages[key]["language"]["label"]
        largest[label] = max(largest[label], values_["tokens"])
    rows = project.output()
    for group, n in available.items():
        target = 20_000 * powers[group] / sum(powers.values())
        of_group = [row for row in rows if languages[row["source"], row["id"]]["language"]["label"] == group]
        taken = sum(tokens[row["source"], row["id"]]["tokens"] for row in of_group)
        assert taken == n if n <= target else abs(taken - target) <= largest[group]
        wanted += min(n, target)
    written = sum(tokens[row["source"], row["id"]]["tokens"] for row in rows)
    assert abs(written - wanted) <= max(largest.values()) / 2
    assert all(ranks[row["source"], row["id"]]["quality"]["rank"] > 0 for row in rows)
    assert all(1 <= row["metadata"]["copy"] <= 7 for row in rows)
    project.ok("validate")


@pytest.mark.s3
@pytest.mark.slow
def test_three_sources_of_real_data_give_the_same_bytes_however_they_are_mixed(
    tmp_path: Path,
    run: Run,
    bucket: str,  # noqa: F811  # a fixture
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    ingest = [
        {"format": "wet", "from": [str(shared / "wet/hplt-sample200.warc.wet.gz")], "source": "web"},
        {"format": "jsonl", "from": [str(shared / "quality/fineweb_edu_annotated_1000.jsonl.gz")], "source": "edu"},
        {"format": "jsonl", "from": [str(shared / "quality/fineweb2_spa*.jsonl.gz")], "source": "spa"},
    ]
    one = recipe(tmp_path / "one", run, tokens="2 M", ingest=ingest)
    one.ok("run")
    assert {row["source"] for row in one.output()} == {"web", "edu", "spa"}
    budget = one.ok("mix", "--json").json["budget"]["groups"]
    assert sum(each["copies"] for each in budget) == len(one.output())
    two = recipe(tmp_path / "two", run, tokens="2 M", ingest=ingest, processes=2)
    two.ok("run")
    assert tree(two.out) == tree(one.out)
    far = recipe(tmp_path / "far", run, at=bucket, tokens="2 M", ingest=ingest)
    far.ok("run")
    assert tree_at(join(bucket, "out")) == tree(one.out)
    far.ok("validate", join(bucket, "out"))
