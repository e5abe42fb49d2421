"""What numbers of a classifier mean: by transformers' configuration, ml_filter's, and ours."""

from typing import Any

import msgspec
import numpy as np
import pytest

from toolkit.errors import ConfigError
from toolkit.text.encoders.config import ModelConfig, Outputs
from toolkit.text.linear.model import Said


def of(config: dict[str, Any], **options: Any) -> Outputs:
    return Outputs.of(msgspec.convert(config, ModelConfig), **options)


def says(outputs: Outputs, *numbers: float) -> Said:
    (found,) = outputs.said(outputs.outcomes(np.array([numbers], np.float32)))
    return found


def test_one_number_is_a_score_as_it_is() -> None:
    """FineWeb-Edu's classifier."""
    assert says(of({"id2label": {"0": "LABEL_0"}, "problem_type": "regression"}), 5.75) == Said(5.75, None, {})
    assert of({"id2label": {"0": "LABEL_0"}}).task == "regression"


def test_classes_have_probabilities_that_add_up_and_labels_are_each_by_itself() -> None:
    names = {"0": "bad", "1": "good", "2": "fair"}
    found = says(of({"id2label": names}), 0.0, np.log(2), 0.0)
    assert found.label == "good"
    assert [*found.scores.items()] == [("good", 0.5), ("bad", 0.25), ("fair", 0.25)]
    several = says(of({"id2label": names, "problem_type": "multi_label_classification"}), 0.0, np.log(3), -800.0)
    assert several == Said(0.75, "good", {"good": 0.75, "bad": 0.5, "fair": 0.0})
    assert of({}).labels == ["LABEL_0", "LABEL_1"]  # as transformers leaves it out


def test_several_numbers_are_targets() -> None:
    config = {"id2label": {"0": "edu", "1": "toxic"}, "problem_type": "regression"}
    assert says(of(config), 3.5, 0.25) == Said(3.5, None, {"edu": 3.5, "toxic": 0.25})
    assert says(of(config, target="toxic"), 3.5, 0.25) == Said(0.25, None, {})
    with pytest.raises(ConfigError, match="target: expected one of edu, toxic, got 'toxik'; did you mean 'toxic'"):
        of(config, target="toxik")


ANNOTATOR = {"architectures": ["AnnotatorModel"], "num_tasks": 2, "num_targets_per_task": [6, 3]}


def test_regressions_of_ml_filter_are_clipped_and_made_as_large_as_their_classes() -> None:
    config = {**ANNOTATOR, "is_regression": True}
    assert of(config).width == 2
    assert says(of(config), 0.5, 1.5) == Said(2.5, None, {"0": 2.5, "1": 2.0})
    assert says(of(config, targets=["edu", "toxic"]), -1.0, 0.25).scores == {"edu": 0.0, "toxic": 0.5}


def test_classes_of_ml_filter_are_rows_and_its_targets_columns() -> None:
    """``x.view(-1, classes, targets)``, and the mask leaves the second target three of six classes."""
    config = {**ANNOTATOR, "is_regression": False}
    assert of(config).width == 12
    numbers = np.zeros((6, 2), np.float32)
    numbers[2, 0] = numbers[1, 1] = 20.0
    numbers[3:, 1] = 99.0  # is masked
    found = says(of(config, targets=["edu", "toxic"]), *numbers.reshape(-1).tolist())
    assert found.scores == pytest.approx({"edu": 2.0, "toxic": 1.0}, abs=1e-6)
    assert found.label is None
    one = says(of(config, targets=["edu", "toxic"], target="toxic"), *numbers.reshape(-1).tolist())
    assert one.label == "1"
    assert [*one.scores] == ["1", "0", "2"]
    alone = of({**config, "num_tasks": 1, "num_targets_per_task": [2]})
    assert says(alone, 0.0, 0.0) == Said(0.5, "0", {"0": 0.5, "1": 0.5})


def test_grades_of_ours_have_a_mean() -> None:
    config = {"toolkit": {"task": "ordinal", "labels": ["0", "1", "4"], "max_tokens": 9}, "id2label": {"0": "x"}}
    assert of(config).width == 2
    found = says(of(config), 0.0, -800.0)
    assert found == Said(0.5, "0", {"0": 0.5, "1": 0.5, "4": 0.0})


@pytest.mark.parametrize(
    ("config", "options", "told"),
    [
        ({"id2label": {"0": "a", "2": "b"}}, {}, "id2label: expected different labels of 0 to 1"),
        ({"id2label": {"0": "a", "1": "a"}}, {}, "id2label: expected different labels"),
        ({"id2label": {"0": "a"}, "problem_type": "token"}, {}, "problem_type: expected one of transformers"),
        ({**ANNOTATOR, "num_tasks": 3}, {}, "num_targets_per_task: expected 3 numbers of classes"),
        (ANNOTATOR, {"targets": ["edu"]}, "targets: expected 2 different names, got edu"),
        ({}, {"targets": ["edu"]}, "targets: expected it only for a model of ml_filter"),
        ({}, {"target": "edu"}, "target: expected one of none, got 'edu'"),
    ],
)
def test_what_does_not_go_together_is_refused(config: dict[str, Any], options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        of(config, **options)
