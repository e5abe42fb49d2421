"""Each way in which a server can fail has its class: transient, of the request, or of the endpoint."""

import json

import pytest

from tests.learn.annotate.conftest import Annotated
from tests.learn.annotate.server import FAULTS
from tests.pages import text_of
from toolkit.learn.annotate.outcomes import CAUSES

pytestmark = pytest.mark.slow

TRANSIENT = (
    "408", "429", "500", "503", "drop", "chunk", "latin", "latin503", "page", "none", "nan", "deep", "nothing",
    "aborted", "inside", "past", "negative",
)  # fmt: skip
OF_REQUEST = {
    "400": ("error_refused", "HTTP 400: told to fail with 400"),
    "403": ("error_refused", "HTTP 403: told to fail with 403"),
    "422": ("error_refused", "HTTP 422: told to fail with 422"),
    "451": ("error_refused", "HTTP 451: told to fail with 451"),
    "latin400": ("error_refused", 'HTTP 400: {"error": {"message": "caf\N{REPLACEMENT CHARACTER}"}}'),
    "toolong": ("error_refused", "HTTP 400: at most 4096 tokens"),
    "large": ("error_refused", "HTTP 413: too large"),
    "filter400": ("error_refused", "HTTP 400: jailbreak"),
    "filtered": ("error_refused", "expected an answer, got a refusal: finish reason content_filter"),
    "refuses": ("error_refused", "expected an answer, got a refusal: I cannot help with that."),
    "huge": ("error_refused", "expected a reply of at most 5,242,880 bytes, got more"),
    "null": ("error_no_generated_text", "expected a text, got none"),
    "tool": ("error_no_generated_text", "expected a text, got a call of a tool"),
    "cut": ("error_faulty_score", "expected a whole answer; the answer was cut off: raise `sampling.max_tokens`"),
}
OF_ENDPOINT = {
    "401": "HTTP 401: told to fail with 401",
    "402": "HTTP 402: told to fail with 402",
    "404": "HTTP 404: told to fail with 404",
    "405": "HTTP 405: told to fail with 405",
    "501": "HTTP 501: told to fail with 501",
    "moved": "HTTP 307: the server redirects to http://…@elsewhere/v1?…",
    "vanished": "HTTP 404: The model `org/model` does not exist.",
    "retired": "HTTP 400: no longer served",
    "unpaid": "HTTP 429: You exceeded your current quota",
    "wrongkey": "HTTP 400: not valid",
    "later": "HTTP 429: slow down; the server asks to wait for 27 h 46 min 40 s, longer than `give_up` (5 min)",
    "nextcentury": "longer than `give_up` (5 min)",
}


def test_every_fault_of_the_server_is_tested() -> None:
    assert {*FAULTS} - {"odd", "twice", "pause"} <= {*TRANSIENT, *OF_REQUEST, *OF_ENDPOINT}


def test_what_may_pass_is_repeated_and_then_left_to_the_next_run(project: Annotated) -> None:
    project.entry |= {"retries": 1, "max_failed": 1}
    project.write([*(f"[{order} 1] once" for order in TRANSIENT), *(f"[{order} 2] twice" for order in TRANSIENT)])
    ran = project.run("--json").succeeds()
    assert [row["status"] for row in project.rows()] == ["success"] * len(TRANSIENT) + ["error_server"] * len(TRANSIENT)
    assert ran.json["sets"]["edu-0"]["retries"] == 2 * len(TRANSIENT)
    assert project.run().code == 0
    assert {row["status"] for row in project.rows()} == {"success"}


def test_what_is_of_a_request_is_kept_with_its_reason_and_not_repeated(project: Annotated) -> None:
    project.entry |= {"max_failed": 1}
    project.write([*(f"[{order}] a text" for order in OF_REQUEST), "fine"])
    for _ in range(2):  # a plain rerun asks nothing
        project.run().succeeds()
        rows = project.rows()
        assert {
            order: (row["status"], row["errors"][0][0]) for order, row in zip(OF_REQUEST, rows, strict=False)
        } == OF_REQUEST
        assert [row["score"] is None for row in rows] == [True] * len(OF_REQUEST) + [False]
        assert len(project.server.bodies) == len(OF_REQUEST) + 1
    project.entry["on_length"] = "read"  # what the answer says is on disk: nothing is asked
    assert project.run("--overwrite").code == 0
    row = project.rows()[[*OF_REQUEST].index("cut")]
    assert (row["status"], row["score"]) == ("success", 3)
    assert len(project.server.bodies) == len(OF_REQUEST) + 1


def test_a_whole_object_is_an_answer_however_it_ended(project: Annotated) -> None:
    project.entry["prompt"] = {"prompt_name": "j", "prompt": "{{ text }}", "score": {"field": "score"}}
    project.entry["max_failed"] = 1
    project.write(["[object] whole", "[half_object] not whole"])
    assert project.run().code == 0
    assert [(row["status"], row["score"]) for row in project.rows()] == [("success", 3), ("error_faulty_score", None)]


def test_what_is_of_the_endpoint_ends_the_run_and_marks_nothing(project: Annotated) -> None:
    """Also after answers: what is left counts as not asked, and the same command asks it."""
    project.entry |= {"concurrency": 2}
    project.write([f"text {i}" for i in range(60)])
    for order, message in OF_ENDPOINT.items():
        asked = len(project.server.bodies)
        project.server.orders_after, project.server.always = asked + 3, order
        ran = project.run().fails(1, "edu-0: stopped with 1 shard left: HTTP ", message)
        assert "secret" not in ran.err
        assert asked + 3 < len(project.server.bodies) <= asked + 3 + 2
        assert {line.get("status", "success") for line in project.stored()} == {"success"}
    project.server.always = ""
    assert project.run().code == 0
    assert {row["status"] for row in project.rows()} == {"success"}
    assert set(project.server.answered.values()) == {1}


def test_refusals_in_a_row_end_the_run_and_count_as_not_asked(project: Annotated) -> None:
    project.entry |= {"breaker": 7, "concurrency": 1}
    project.write([f"text {i}" for i in range(60)])
    for order in ("400", "403", "filter400", "refuses", "null"):
        asked = len(project.server.bodies)
        project.server.orders_after, project.server.always = asked + 3, order
        project.run().fails(
            1,
            "stopped with 1 shard left: 7 requests in a row have failed; the last one: ",
            "the documents count as not asked",
        )
        assert len(project.server.bodies) == asked + 3 + 7
        assert {line.get("status", "success") for line in project.stored()} == {"success"}
    project.server.always = ""
    assert project.run().code == 0
    assert {row["status"] for row in project.rows()} == {"success"}
    assert set(project.server.answered.values()) == {1}


def test_fewer_refusals_or_other_ones_are_of_their_requests(project: Annotated) -> None:
    """An answer between them begins the count anew; what is refused at the very end is kept, too."""
    project.entry |= {"breaker": 3, "concurrency": 1, "max_failed": 1}
    orders = ["400", "400", "", "400", "422", "400", "422", "", "403", "403"]
    project.write([f"[{order}] {i}" if order else f"fine {i}" for i, order in enumerate(orders)])
    assert project.run().code == 0
    assert [row["status"] == "error_refused" for row in project.rows()] == [bool(order) for order in orders]
    project.entry["breaker"] = None
    project.write([f"[400] {i}" for i in range(30)], "b")
    assert project.run().code == 0
    assert {row["status"] for row in project.rows("b")} == {"error_refused"}


def test_a_server_that_forbids_all_that_it_is_asked_is_at_fault_itself(project: Annotated) -> None:
    project.write(["[403] one", "[403] another"])
    project.run().fails(1, "2 requests in a row have failed; the last one: HTTP 403")
    assert project.stored() == []
    project.write(["[403 1] one", "fine"])
    project.entry["max_failed"] = 1
    assert project.run().code == 0
    assert project.rows()[1]["status"] == "success"


def test_a_server_that_is_down_in_the_middle_marks_nothing(project: Annotated) -> None:
    project.entry |= {"breaker": 4, "retries": 1, "concurrency": 2}
    project.write([f"text {i}" for i in range(40)])
    project.server.orders_after, project.server.always = 10, "503"
    project.run().fails(1, "4 requests in a row have failed; the last one: HTTP 503: told to fail with 503 (2 times)")
    assert {line.get("status", "success") for line in project.stored()} == {"success"}


@pytest.mark.parametrize("option", ["annotate.edu-0.give_up=0.5", "storage.give_up=0.5s"])
def test_how_long_a_server_is_waited_for_is_an_option(project: Annotated, option: str) -> None:
    project.write(["[pause] a text"])
    project.run(option).fails(1, "the server asks to wait for 1 s, longer than `give_up` (0 s)")
    assert len(project.server.bodies) == 1


def test_headers_without_end_are_given_up(project: Annotated) -> None:
    """No wait for bytes is long; the whole is longer than `timeout`."""
    project.entry |= {"timeout": 0.5, "retries": 1, "max_failed": 1}
    project.write(["[dripping] one", "[continuing] another", "[dripping 1] once", "[continuing 1] once"])
    project.run().succeeds()
    assert [row["status"] for row in project.rows()] == ["error_server"] * 2 + ["success"] * 2


def test_numbers_of_tokens_that_are_none_cost_no_answer(project: Annotated) -> None:
    project.write(["[odd] usage", "[twice] the same key"])
    assert project.run().code == 0
    rows = project.rows()
    assert [row["score"] for row in rows] == [3, 3]
    assert rows[0]["prompt_tokens"] > 0
    assert rows[0]["completion_tokens"] > 0


def test_one_choice_of_several_that_has_failed_is_asked_again(project: Annotated) -> None:
    project.entry |= {"samples": 3, "one_request": True}
    project.write(["[partly 1] a text"])
    assert project.run().code == 0
    assert [body.get("n", 1) for body in project.server.bodies] == [3, 1]
    assert project.rows()[0]["statuses"] == ["success"] * 3


def test_the_page_has_the_table() -> None:
    page = " ".join(text_of("docs/annotating.md").split())
    for cause in CAUSES.values():
        assert f"| {cause.when} |" in page, cause.when


def test_answers_that_are_not_on_the_scale_are_faults(project: Annotated) -> None:
    """The scale counts in place of the least and the greatest of the prompt; nothing is asked again for it."""
    project.entry["prompt"]["score"] = {"regex": r"Educational score:\s*(\d+)", "min": 0, "max": 2}
    project.write(["[eleven]", "four", "fiver"])  # 11, and 4 and 5 by the length of what the model is asked
    assert project.run().code == 1
    assert [row["scores"] for row in project.rows()] == [[None]] * 3
    project.entry["scale"] = {"values": [0, 2, 4]}
    assert project.run("--overwrite").code == 1
    rows = project.rows()
    assert [row["scores"] for row in rows] == [[None], [4.0], [None]]
    assert rows[0]["errors"] == [["expected a score on the scale 0, 2, 4, got 11"]]
    assert len(project.server.bodies) == 3


# What a model has said becomes annotation files of ml_filter, with the model, the prompt and its language.


def test_what_was_asked_becomes_annotation_files(project: Annotated) -> None:
    """Statuses are those of ml_filter; a document that was not asked about has no line; a rerun writes nothing."""
    project.entry |= {"samples": 2, "retries": 0, "max_failed": 1, "when": "document.chars > 3"}
    project.write(["a text", "[400] refused", "x", "[silent] text"])
    assert project.run().code == 0
    rows = project.rows()
    out = project.root / "exp"
    ran = project.run("--from", "edu-0", "--output", out, "--json").succeeds()
    assert (ran.json["documents"], ran.json["without"]) == (3, 1)
    (path,) = (out / "generated_annotations").iterdir()
    assert path.name == "a__annotations_org--model_educational_value_en.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["document_id"] for line in lines] == ["a0", "a1", "a3"]
    for line, row in zip(lines, [rows[0], rows[1], rows[3]], strict=True):
        for name in ("scores", "explanations", "errors", "time_stamps"):
            assert line[name] == row[name]
    success, refused, silent = (line["document_processing_status"] for line in lines)
    assert success == ["success"] * 2
    assert refused == ["error_server"] * 2
    assert silent == ["error_no_generated_text"] * 2
    meta = lines[0]["meta_information"]
    assert meta.pop("out_tokens_per_second") > 0
    assert meta == {
        "prompt_name": "educational_value",
        "prompt_lang": "en",
        "model_name": "org/model",
        "raw_data_file_path": str(project.root / "data/documents/a.jsonl"),
    }
    assert project.run("--from", "edu-0", "--output", out, "--json").json["written"] == 0
