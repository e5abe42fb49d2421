"""The page on fine-tuned classifiers, run: a model, its set, figures, a mix."""

import json
import random
from pathlib import Path

import pytest

from tests import pages
from tests.conftest import Run
from tests.pipeline.conftest import document, read_rows, write_rows
from tests.pipeline.test_train import BAD, GOOD, text
from tests.text.encoders.classifiers import write_encoder
from toolkit.text.encoders.config import ModelConfig, Outputs

PAGE = "docs/classifiers.md"


@pytest.mark.slow
def test_the_commands_of_the_page_fine_tune_an_encoder_and_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("transformers", reason="the extra torch is not installed")
    monkeypatch.chdir(tmp_path)
    write_encoder(tmp_path / "encoder", head=False, words=[*GOOD, *BAD])
    chance = random.Random(3)
    rows = [(chance.random(), i) for i in range(200)]
    found = [document(str(i), text(chance, share), score=round(share * 5)) for share, i in rows]
    write_rows(tmp_path / "edu/a.jsonl", found)
    configurations = [block.text for block in pages.blocks(PAGE) if block.language == "yaml"]
    for name, content in zip(("classifier.yaml", "tagged.yaml"), configurations, strict=False):
        (tmp_path / name).write_text(content)
    printed = ""
    for block in pages.blocks(PAGE):
        for shown in pages.commands(block) if block.language == "sh" else []:
            if shown.command.startswith("toolkit") and "ray" not in shown.command:
                printed += pages.carried_out(shown.command, tmp_path, run)
    assert "spearman" in printed
    assert [*read_rows(next((tmp_path / "data/educational").rglob("*.jsonl.gz")))]


def test_the_line_of_a_configuration_is_enough() -> None:
    line = '{"id2label": {"0": "low", "1": "high"}}'
    assert line in pages.text_of(PAGE).replace('"1":\n"high"', '"1": "high"')
    config = json.loads(line)
    assert Outputs.of(ModelConfig(**config)).labels == ["low", "high"]
