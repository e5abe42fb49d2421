"""Batch services: files of requests that nobody has yet, and results in any order, in parts, with errors, and again."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.learn.annotate.conftest import Annotated


@pytest.fixture
def batch(project: Annotated) -> Annotated:
    project.entry |= {
        "endpoint": f"batch:{project.root / 'batch'}",
        "prices": {"input": 1.0, "output": 2.0},
        "samples": 2,
        "sampling": {"seed": 7},
    }
    project.write(["one", "two", "three"])
    project.write(["four"], "b")
    return project


def annotate(project: Annotated, *options: object) -> dict[str, Any]:
    ran = project.run("--json", *options).succeeds()
    found: dict[str, Any] = json.loads(ran.out)["sets"]["edu-0"]
    return found


def requests(project: Annotated) -> list[dict[str, Any]]:
    paths = sorted((project.root / "batch").glob("requests-*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def result(request: dict[str, Any], text: str = "Educational score: 3", status: int = 200) -> dict[str, Any]:
    body: dict[str, Any] = {
        "created": 1_700_000_000,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }
    body = body if status == 200 else {"error": {"message": text}}
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "x", "custom_id": request["custom_id"], "response": response, "error": None}


def answer(project: Annotated, name: str, results: list[dict[str, Any]]) -> None:
    path = project.root / "batch" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in results))


def test_requests_are_written_once_and_results_are_read_in_any_order(batch: Annotated) -> None:
    found = annotate(batch)
    assert found["batch"]["written"] == found["batch"]["waiting"] == 8
    asked = requests(batch)
    assert [Path(path).exists() for path in found["batch"]["files"]] == [True]
    assert len({request["custom_id"] for request in asked}) == 8
    assert {(request["method"], request["url"]) for request in asked} == {("POST", "/v1/chat/completions")}
    assert asked[0]["body"] == {
        "model": "org/model", "messages": [{"role": "user", "content": "Judge this.\none"}], "temperature": 0.7,
        "max_tokens": 512, "seed": 7,
    }  # fmt: skip
    assert asked[1]["body"]["seed"] == 8
    assert not batch.server.bodies

    again = annotate(batch)
    assert (again["batch"]["written"], again["batch"]["waiting"]) == (0, 8)
    assert len(requests(batch)) == 8

    answer(batch, "out/part-2.jsonl", [result(request) for request in reversed(asked[:3] + asked[6:])])
    found = annotate(batch)
    assert (found["requests"], found["batch"]["waiting"], found["shards_written"]) == (5, 3, 1)
    assert batch.rows("b")[0]["scores"] == [3.0, 3.0]
    assert batch.rows("b")[0]["time_stamps"] == [1_700_000_000] * 2
    assert found["cost"] == pytest.approx(5 * (100 + 2 * 10) / 1e6)

    random.Random(1).shuffle(asked)
    answer(batch, "all.jsonl", [result(request) for request in asked])
    found = annotate(batch)
    assert (found["requests"], found["batch"]["waiting"], found["shards_written"]) == (3, 0, 1)
    assert [row["score"] for row in batch.rows()] == [3.0, 3.0, 3.0]
    assert found["all_runs"]["attempts"] == 8
    assert found["all_runs"]["cost"] == pytest.approx(8 * 120 / 1e6)

    found = annotate(batch)
    assert (found["requests"], found["up_to_date"], found["all_runs"]["attempts"]) == (0, 2, 8)


def test_errors_are_those_of_their_lines(batch: Annotated) -> None:
    batch.entry |= {"samples": 1, "max_failed": 1}
    annotate(batch)
    asked = requests(batch)
    lost = {"id": "x", "custom_id": asked[1]["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    failed = [result(asked[0], "too long", 400), lost, result(asked[2], "busy", 503), result(asked[3], "no number")]
    answer(batch, "errors.jsonl", failed)
    found = annotate(batch)
    assert (found["batch"]["written"], found["batch"]["waiting"]) == (2, 2)  # what may pass is asked for again
    assert [request["custom_id"] for request in requests(batch)[4:]] == [each["custom_id"] for each in asked[1:3]]
    assert annotate(batch)["batch"]["written"] == 0
    answer(batch, "second.jsonl", [result(request) for request in asked[1:3]])
    assert annotate(batch)["statuses"] == {"error_faulty_score": 1, "error_refused": 1, "success": 2}
    assert [row["status"] for row in batch.rows()] == ["error_refused", "success", "success"]
    assert batch.rows()[0]["errors"] == [["HTTP 400: too long"]]
    assert batch.rows("b")[0]["status"] == "error_faulty_score"

    assert annotate(batch, "--retry-failed")["batch"]["written"] == 2
    assert len(requests(batch)) == 8
    answer(batch, "third.jsonl", [result(request) for request in requests(batch)[6:]])
    assert annotate(batch)["statuses"] == {"success": 4}
    before = annotate(batch)["all_runs"]
    assert annotate(batch)["all_runs"] == before
    assert batch.rows("b")[0]["score"] == 3.0


def test_a_bound_on_the_cost_counts_requests_without_a_result(batch: Annotated) -> None:
    batch.entry["max_cost"] = 0.004  # an answer of 512 tokens is more than 0.001
    batch.run().fails(1, "another request may cost more than `max_cost: 0.004` leaves")
    assert len(requests(batch)) == 3
    assert batch.run().code == 1
    assert len(requests(batch)) == 3


def test_a_line_that_is_no_result_is_named(batch: Annotated) -> None:
    annotate(batch)
    (batch.root / "batch/results.jsonl").write_text('{"custom_id": "a"\n')
    batch.run().fails(1, "results.jsonl:1: expected a request or a result of a batch service, got")


def test_results_may_be_named_after_their_requests_and_compressed(batch: Annotated) -> None:
    (requested,) = map(Path, annotate(batch)["batch"]["files"])
    asked = requests(batch)
    answer(batch, f"{requested.stem}_output.jsonl", [result(request) for request in asked[:3]])
    answer(batch, f"{requested.stem}-1.jsonl", [result(request) for request in asked[3:6]])
    lines = "".join(json.dumps(result(request)) + "\n" for request in asked[6:])
    (batch.root / "batch/rest.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    found = annotate(batch)
    assert (found["requests"], found["batch"]["waiting"], found["batch"]["written"]) == (8, 0, 0)


def test_results_in_place_of_the_requests_are_refused(batch: Annotated) -> None:
    (requested,) = map(Path, annotate(batch)["batch"]["files"])
    answer(batch, requested.name, [result(request) for request in requests(batch)])
    batch.run().fails(1, f"{requested.name}: expected the requests that were written here, got a result; save results")


def test_a_result_without_response_and_error_is_not_asked_for_again(batch: Annotated) -> None:
    annotate(batch)
    asked = requests(batch)
    message = {"type": "succeeded", "message": {"content": []}}  # of another service
    answer(batch, "results.jsonl", [{"custom_id": request["custom_id"], "result": message} for request in asked])
    batch.run().fails(
        1, "results.jsonl:1: expected a request or a result of a batch service, got: neither `method` nor"
    )
    assert len(requests(batch)) == len(asked)
