"""`toolkit annotate` against a server that fails in every way it is told."""

import errno
import json
import os
import socket
import time
from pathlib import Path

import pytest
import yaml

import toolkit
from tests.learn.annotate.conftest import PROMPT, Annotated
from tests.learn.annotate.server import prompt_of
from toolkit.learn.annotate import answers
from toolkit.learn.annotate.answers import Answer, AnswerCache


def test_what_fails_for_a_while_is_asked_until_it_is_answered(project: Annotated) -> None:
    orders = ["", "[429 2]", "[500 1]", "[503 2]", "[drop 1]", "[page 1]"]
    project.write([f"{order} a text about {i}" for i, order in enumerate(orders)])
    ran = project.run("--json").succeeds()
    rows = project.rows()
    assert [row["status"] for row in rows] == ["success"] * len(orders)
    seen = [len(f"Judge this.\n{order} a text about {i}") % 6 for i, order in enumerate(orders)]
    assert [row["score"] for row in rows] == seen
    assert set(project.server.answered.values()) == {1}
    made = ran.json["sets"]["edu-0"]
    assert (made["requests"], made["retries"]) == (len(orders), 7)
    assert all(row["time_stamps"][0] > 1_600_000_000 and row["windows"] == [[0, row["windows"][0][1]]] for row in rows)


def test_the_model_sees_the_edited_text_and_windows_are_places_in_it(project: Annotated) -> None:
    project.entry["text"] = [{"cut_lines": {"regex": "^menu"}}, {"replace": {"regex": "[a-z]+@[a-z.]+"}, "by": "MAIL"}]
    texts = ["menu home\na text of me@b.org", "untouched", "menu"]
    project.write(texts)
    assert project.run().code == 0
    prompts = sorted(prompt_of(body).partition("\n")[2] for body in project.server.bodies)
    assert prompts == ["", "a text of MAIL", "untouched"]
    assert [row["windows"] for row in project.rows()] == [[[0, 14]], [[0, 9]], [[0, 0]]]


@pytest.mark.slow
def test_a_server_that_hangs_is_left_after_the_timeout(project: Annotated) -> None:
    """How often others run into it, too, depends on the machine."""
    project.entry |= {"timeout": 1, "retries": 20}
    project.write(["[hang 1] before the headers", "[half 1] within the body", "fine"])
    assert project.run().code == 0
    assert [row["status"] for row in project.rows()] == ["success"] * 3


def test_what_finally_fails_keeps_its_status_in_its_row_and_is_listed(project: Annotated) -> None:
    project.entry |= {"retries": 1, "max_failed": 0.9}
    orders = ["", "[500]", "[400]", "[silent]", "[rambling]", "[eleven]"]
    project.write([f"{order} a text" for order in orders])
    ran = project.run().succeeds()
    rows = project.rows()
    faulty = "error_faulty_score"
    statuses = ["success", "error_server", "error_refused", "error_no_generated_text", faulty, faulty]
    assert [row["status"] for row in rows] == statuses
    assert [row["score"] is None for row in rows] == [False] + [True] * 5
    errors = [row["errors"][0] for row in rows]
    assert errors[0] == []
    assert [error[0].partition(";")[0] for error in errors[1:]] == [
        "HTTP 500: told to fail with 500 (2 times)",
        "HTTP 400: told to fail with 400",
        "expected a text, got none",
        r"expected a score as Educational score:\s*(\d+), got none",
        "expected a score of at least 0 and at most 5, got 11",
    ]
    assert "raise `sampling.max_tokens`" in errors[4][0]
    assert len(rows[4]["explanations"][0]) < 600  # an excerpt of 2,000
    for status in ("error_server", "error_refused", "error_no_generated_text"):
        assert f"1 sample {status}, the first: " in ran.out
    assert "5 documents failed" in ran.out


@pytest.mark.slow
def test_a_rerun_asks_again_what_was_not_answered_and_all_that_failed_if_told(project: Annotated) -> None:
    project.entry |= {"retries": 0, "max_failed": 1}
    project.write(["fine", "[500 1] once", "[400] never", "[rambling 1] at first"])
    assert project.run().code == 0
    assert [row["statuses"][0] for row in project.rows()] == [
        "success", "error_server", "error_refused", "error_faulty_score",
    ]  # fmt: skip
    asked = len(project.server.bodies)
    assert project.run().code == 0
    assert [prompt_of(body).partition("\n")[2] for body in project.server.bodies[asked:]] == ["[500 1] once"]
    assert [row["status"] for row in project.rows()][:2] == ["success"] * 2
    asked = len(project.server.bodies)
    assert project.run("--retry-failed").code == 0
    assert len(project.server.bodies) == asked + 2
    assert [row["status"] for row in project.rows()] == ["success", "success", "error_refused", "success"]
    before = (project.root / "data/attributes/edu-0/a.jsonl").read_bytes()
    assert project.run().code == 0
    assert len(project.server.bodies) == asked + 2
    assert (project.root / "data/attributes/edu-0/a.jsonl").read_bytes() == before


@pytest.mark.slow
def test_too_many_failures_end_with_1_and_a_failing_document_fails_its_shard_if_told(project: Annotated) -> None:
    project.write(["fine", "[400] never"], "a")
    project.write(["fine, too"], "b")
    project.run().fails(1, "expected at most 10% of the documents to fail (`max_failed`), got 33.3%")
    assert len(project.rows()) == 2
    project.entry["on_error"] = "fail"
    project.run("--overwrite", "--retry-failed").fails(
        1, "a.jsonl:2: ", "HTTP 400: told to fail with 400; `on_error: keep` would"
    )
    assert project.rows("b")[0]["status"] == "success"


@pytest.mark.slow
def test_a_server_that_refuses_the_key_or_fails_all_the_time_stops_the_run(project: Annotated) -> None:
    project.write([f"text {i}" for i in range(200)])
    project.server.always = "401"
    project.run().fails(1, "stopped with 1 shard left: HTTP 401: told to fail with 401")
    assert len(project.server.bodies) <= 8
    project.server.always = "500"
    project.entry["retries"] = 0
    project.run().fails(1, "20 requests in a row have failed; the last one: HTTP 500")
    assert len(project.server.bodies) < 60
    project.server.always = ""
    assert project.run().code == 0
    assert {row["status"] for row in project.rows()} == {"success"}


@pytest.mark.slow
def test_samples_are_asked_for_one_by_one_or_together(project: Annotated) -> None:
    project.write(["one text", "another text"])
    project.entry |= {"samples": 3, "sampling": {"temperature": 0.5, "seed": 7, "max_tokens": 20}}
    assert project.run().code == 0
    seeds = sorted(body["seed"] for body in project.server.bodies)
    assert seeds == [7, 7, 8, 8, 9, 9]
    assert all(len(row["scores"]) == 3 and row["prompt_tokens"] == 300 for row in project.rows())
    # the same samples are found by a set that asks for more of them, and for these in one request
    project.entry |= {"samples": 5, "one_request": True}
    asked = len(project.server.bodies)
    project.run("--overwrite").succeeds()
    assert [body["n"] for body in project.server.bodies[asked:]] == [2, 2]
    assert all(len(row["scores"]) == 5 and row["completion_tokens"] == 50 for row in project.rows())


def test_a_server_that_ignores_n_is_asked_again(project: Annotated) -> None:
    project.server.ignores_n = True
    project.write(["one text"])
    project.entry |= {"samples": 3, "one_request": True}
    assert project.run().code == 0
    assert [body.get("n") for body in project.server.bodies] == [3, 2, None]
    assert len(project.rows()[0]["scores"]) == 3


@pytest.mark.slow
def test_nothing_is_asked_twice_by_another_set_endpoint_or_document(project: Annotated) -> None:
    project.write(["the same text", "another", "the same text"])
    assert project.run().code == 0
    assert len(project.server.bodies) == 2
    first = project.rows()
    entry = {**project.entry, "endpoint": project.server.url + "/", "aggregate": "max"}
    entry["prompt"] = {**entry["prompt"], "score": {"regex": r"score: (\d)"}}
    project.more = {"annotate": {"edu-1": entry}}
    assert project.run().code == 0
    assert len(project.server.bodies) == 2
    assert [row["score"] for row in project.rows(name="edu-1")] == [row["score"] for row in first]
    # another sampling asks something else
    project.more["annotate"] = {"edu-2": {**entry, "sampling": {"top_p": 0.5}}}
    assert project.run().code == 0
    assert len(project.server.bodies) == 4


@pytest.mark.slow
def test_settings_that_change_values_are_refused_and_others_are_not(project: Annotated) -> None:
    project.write(["a text"])
    assert project.run().code == 0
    project.entry |= {"concurrency": 9, "retries": 3, "timeout": 5, "requests_per_minute": 1000}
    assert project.run().code == 0
    project.entry["prompt"] = {**project.entry["prompt"], "prompt": "Other: {{ text }}"}
    project.run().fails(2, "expected the set 'edu-0' as the section `annotate:` says", "toolkit annotate --overwrite")
    assert project.run("--overwrite").code == 0
    assert prompt_of(project.server.bodies[-1]) == "Other: a text"


def test_a_set_is_out_of_date_when_the_file_of_its_prompt_has_changed(project: Annotated) -> None:
    """Also where no section names the set any more."""
    project.write(["a text"])
    path = project.root / "prompt.yaml"
    path.write_text(yaml.safe_dump(PROMPT))
    project.entry["prompt"] = str(path)
    output = {"format": "dolma", "path": str(project.root / "out")}
    mix = {"attributes": ["edu-0"], "rules": [], "output": output}
    assert project.run().code == 0
    project.more = {"annotate": {}, "mix": mix}
    assert project.run(command="mix").code == 0
    path.write_text("# a comment\n" + yaml.safe_dump(PROMPT))
    assert project.run(command="mix").code == 0
    path.write_text(yaml.safe_dump(PROMPT | {"prompt": "Other: {{ text }}"}))
    ran = project.run(command="mix")
    told = f"the prompt {path} as it is now, got those of an earlier version; run `toolkit annotate --overwrite`"
    assert (ran.code != 0, told in ran.err) == (True, True), ran.err
    path.unlink()
    assert project.run(command="mix").code == 0


@pytest.mark.slow
def test_a_cost_limit_stops_the_run_before_it_is_passed_and_the_next_one_goes_on(project: Annotated) -> None:
    project.write([f"text {i}" for i in range(30)])
    project.entry |= {"prices": {"input": 1e4, "output": 1e4}, "sampling": {"max_tokens": 10}, "max_cost": 12.0}
    shown = project.run("--dry-run", "--json").json["plan"]["annotate"]["edu-0"]
    assert (shown["documents"], shown["requests"], shown["max_completion_tokens"]) == (30, 30, 300)
    assert shown["cost"] > 0
    assert project.server.bodies == []
    ran = project.run("--json").fails(1, "another request may cost more than `max_cost: 12` leaves")
    cost = ran.json["sets"]["edu-0"]["cost"]
    assert cost <= 12
    answered = len(project.server.bodies)
    assert cost == pytest.approx(answered * 1.1)
    assert 0 < answered < 30
    project.entry["max_cost"] = 1000
    project.run("--json").succeeds()
    assert len(project.server.bodies) == 30
    assert set(project.server.answered.values()) == {1}


def test_what_the_model_saw_is_in_the_row(project: Annotated) -> None:
    text = "Łódź " * 10
    project.write([text, "kurz"])
    project.entry["window"] = {"characters": 8, "pieces": ["begin", "end"]}
    assert project.run().code == 0
    rows = project.rows()
    assert rows[0]["windows"] == [[0, 8], [42, 50]]
    assert rows[0]["tags"] == ["truncated"]
    assert rows[1]["windows"] == [[0, 4]]
    assert rows[1]["tags"] == []
    seen = {prompt_of(body).partition("\n")[2] for body in project.server.bodies}
    assert seen == {text[:8].strip(), text[42:50].strip(), "kurz"} or seen == {text[:8], text[42:50], "kurz"}


@pytest.mark.slow
def test_documents_of_a_condition_only(project: Annotated) -> None:
    project.write(["short", "a text that is longer"])
    project.more = {"tag": {"shape-0": ["line_shape"]}}
    assert project.run(command="tag").code == 0
    project.entry["when"] = "line_shape.chars > 10"
    ran = project.run("--json").succeeds()
    assert [prompt_of(body).partition("\n")[2] for body in project.server.bodies] == ["a text that is longer"]
    rows = project.rows()
    assert rows[0] is None
    assert rows[1]["status"] == "success"
    assert ran.json["sets"]["edu-0"]["asked"] == 1


def test_the_key_is_sent_and_is_in_no_file(project: Annotated, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(["a text", "[400] told"])
    project.entry |= {"api_key_env": "MY_KEY", "max_failed": 1}
    monkeypatch.delenv("MY_KEY", raising=False)
    ran = project.run()
    assert (ran.code, project.server.bodies) == (2, [])
    assert "own.yaml:3: annotate.edu-0.api_key_env: expected the key of the server in the variable MY_KEY" in ran.err
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    ran = project.run("--debug").succeeds()
    assert project.server.headers["Authorization"] == "Bearer sk-very-secret"
    assert "very-secret" not in ran.out + ran.err
    for path in project.root.rglob("*"):
        assert path.is_dir() or b"very-secret" not in path.read_bytes(), path


@pytest.mark.slow
def test_labels_json_and_the_completions_interface(project: Annotated) -> None:
    project.write(["a text"])
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    project.entry["prompt"] = {
        "prompt_name": "j",
        "prompt": "{{ text }}",
        "schema": schema,
        "score": {"field": "score"},
    }
    project.entry["max_failed"] = 1
    assert project.run().code == 0
    told = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    assert project.server.bodies[-1]["response_format"] == told
    assert project.rows()[0]["errors"][0][0].startswith("expected a JSON object, got")
    label = {"regex": r"(Because|Since)", "labels": ["since", "because"]}
    prompt = {"prompt_name": "why", "system": "You are {{ source }}.", "prompt": "{{ text }}", "label": label}
    project.more = {"annotate": {"why-0": {**project.entry, "prompt": prompt, "api": "completions"}}}
    assert project.run().code == 0
    assert project.server.bodies[-1]["prompt"] == "You are s.\n\na text"
    assert project.rows(name="why-0")[0]["label"] == "because"


@pytest.mark.slow
def test_run_does_it_behind_tag_and_a_mix_uses_it(project: Annotated) -> None:
    project.write(["a text", "another text", "third text that counts"])
    project.more["mix"] = {
        "attributes": ["edu-0"],
        "rules": [{"keep": "educational_value.score is not None and educational_value.score >= 3"}],
        "output": {"format": "dolma", "path": str(project.root / "out")},
    }
    ran = project.run(command="run").succeeds()
    kept = [row["score"] >= 3 for row in project.rows()]
    assert f"3 documents, {sum(kept)} kept" in ran.out
    assert project.run(command="status").code == 0
    assert project.run(command="validate").code == 0
    assert project.run(command="run").code == 0
    assert len(project.server.bodies) == 3
    project.entry["aggregate"] = "max"
    project.run(command="mix").fails(2, "as the section `annotate:` says")


@pytest.mark.slow
def test_from_python(project: Annotated) -> None:
    project.write(["a text", "[silent] another"])
    project.entry["max_failed"] = 0.6
    made = toolkit.annotate(str(project.yaml))
    assert made.sets["edu-0"]["statuses"] == {"success": 1, "error_no_generated_text": 1}
    project.server.always = "401"
    project.write(["a third text"], "b")
    with pytest.raises(toolkit.Failed, match="stopped with 1 shard left: HTTP 401") as raised:
        toolkit.annotate(str(project.yaml), overrides=["annotate.edu-0.retries=0"])
    assert raised.value.result.sets["edu-0"]["up_to_date"] == 1


@pytest.mark.slow
def test_requests_at_a_time_are_bounded(project: Annotated) -> None:
    project.write([f"text {i}" for i in range(60)])
    project.entry["concurrency"] = 3
    assert project.run().code == 0
    assert project.server.most <= 3


@pytest.mark.slow
def test_a_full_disk_and_a_damaged_answer_are_told(
    project: Annotated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(["a text", "another"])

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(answers, "_write", full)
        ran = project.run()
    assert ran.code == 1
    assert "expected to write an attempt, got: No space left on device; free some space" in ran.err
    assert project.run().code == 0
    asked = len(project.server.bodies)
    paths = (tmp_path / "data/.toolkit/answers").rglob("*.jsonl")
    path = next(each for each in paths if each.stat().st_size)
    path.write_bytes(path.read_bytes().replace(b'"at":', b'"at";'))
    (tmp_path / "data/attributes/edu-0/a.jsonl").unlink()
    project.run().fails(1, f"{path}: expected an answer, got")
    path.unlink()
    assert project.run().code == 0
    assert len(project.server.bodies) == asked + 2


@pytest.mark.slow
def test_answers_are_read_back_after_a_torn_line(project: Annotated, tmp_path: Path) -> None:
    project.write(["a text", "another"])
    assert project.run().code == 0
    (path,) = (tmp_path / "data/.toolkit/answers").rglob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][: len(lines[1]) // 2])
    ran = project.run("--overwrite").succeeds()
    assert f"warning: {path}: expected whole answers, got an incomplete line at its end" in ran.err
    assert len(project.server.bodies) == 2  # the set is up to date
    (tmp_path / "data/attributes/edu-0/a.jsonl").unlink()
    assert project.run().code == 0
    assert len(project.server.bodies) == 3
    assert json.loads(lines[0])["key"] in {line["key"] for line in map(json.loads, path.read_text().splitlines()[:1])}


def test_the_answer_that_comes_later_counts_whatever_clocks_say(tmp_path: Path) -> None:
    """A run before was on a machine whose clock is ten minutes ahead."""
    for text in ("former", "later"):
        with AnswerCache(str(tmp_path)) as answers:
            answers.add(Answer(key="0" * 32, at=0, text=text))
        if text == "former":
            [file] = tmp_path.glob("*.jsonl")
            file.rename(tmp_path / f"{time.time_ns() + 600 * 10**9:020d}-ahead-1.jsonl")
    with AnswerCache(str(tmp_path)) as answers:
        found = answers.get("0" * 32)
    assert found
    assert found.text == "later"


@pytest.mark.slow
def test_a_server_that_is_not_there_stops_the_run_at_the_first_request(project: Annotated) -> None:
    project.write([f"text {i}" for i in range(30)])
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # while it is held, nobody else can listen there
        port = deaf.getsockname()[1]
        project.entry |= {"endpoint": f"http://127.0.0.1:{port}/v1", "retries": 2, "concurrency": 1}
        ran = project.run()
    assert ran.code == 1
    assert "stopped with 1 shard left: expected a reply, got: " in ran.err
    assert f"refused (3 times); is there a server at http://127.0.0.1:{port}/v1?" in ran.err
    project.entry |= {"endpoint": project.server.url}
    assert project.run().code == 0
    assert len(project.stored()) == 30
