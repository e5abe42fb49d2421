"""The server: who may ask, and what it answers to those who try other things."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.browser.made import HOSTILE
from tests.pipeline.conftest import Project, document, write_rows
from tests.view.sites import LONG, MANY, TEXTS, Site, lay_out, serving
from tests.waiting import PATIENCE, wait_until
from toolkit.mix.rule_effects.preview import blocks
from toolkit.view import questions
from toolkit.view.answers import TEXT
from toolkit.view.corpus import At, Query


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The page of the dataset, for all tests here."""
    root = tmp_path_factory.mktemp("site")
    with serving(lay_out(root), root / "l.jsonl") as found:
        yield found


# --- who may ask ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_is_for_who_has_the_token(site: Site) -> None:
    host = {"Host": f"127.0.0.1:{site.port}"}
    assert site.send(f"/?token={site.token}", host).status == 200
    for target in ("/", "/?token=", "/?token=x", f"/?token={site.token}x", f"/?token={site.token[:-1]}", "/?token=%ff"):
        answer = site.send(target, host)
        assert (answer.status, answer.headers["Content-Type"]) == (403, "text/plain; charset=utf-8")
    for name in ("view", "rows", "document", "explain", "trace", "find", "nothing"):
        assert site.send(f"/api/{name}", host).status == 403
        assert site.send(f"/api/{name}?token={site.token}", host).status == 403  # for these it is in the header alone
        assert site.send(f"/api/{name}", host | {"X-Token": "ü".encode().decode("latin-1")}).status == 403
    labelled = site.send("/api/label", host | {"Content-Type": "application/json"}, "POST", b"{}")
    assert labelled.status == 403
    assert site.server.token not in site.send(f"/?token={site.token}", host).body.decode()


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "", "0.0.0.0", "[::1]"]
)
def test_a_name_that_was_made_to_point_here_is_refused(site: Site, host: str) -> None:
    assert site.send("/api/view", site.usual | {"Host": host}).status == 421
    assert site.send(f"/?token={site.token}", {"Host": host}).status == 421


def test_no_host_and_two_hosts_are_refused(site: Site) -> None:
    assert site.send("/api/view", {"X-Token": site.token}).status == 421
    with socket.create_connection(("127.0.0.1", site.port)) as raw:
        raw.sendall(
            f"GET /api/view HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nX-Token: {site.token}\r\n\r\n".encode()
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 421")


def test_a_tunnel_from_another_port_may_ask(site: Site) -> None:
    assert (
        site.send("/api/view", site.usual | {"Host": "localhost:9999", "Origin": "http://localhost:9999"}).status == 200
    )


@pytest.mark.parametrize(
    "header",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_may_not_ask(site: Site, header: dict[str, str]) -> None:
    headers = site.usual | header
    assert site.send("/api/view", headers).status == 403
    asked = headers | {"Content-Type": "application/json"}
    label = b'{"at": [1, 0], "id": "b-0", "question": "verdict", "label": "keep"}'
    assert site.send("/api/label", asked, "POST", label).status == 403
    assert len(site.labels) == 0


def test_nobody_is_told_that_others_may_ask(site: Site) -> None:
    wanted = {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-token",
    }
    for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "CONNECT"):
        answer = site.send("/api/label", site.usual | wanted, method)
        assert answer.status == 405
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_it_listens_on_this_machine_alone(site: Site) -> None:
    assert site.server.server_address[0] == "127.0.0.1"
    others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others:
        with pytest.raises(OSError, match=""), socket.create_connection((str(address), site.port), timeout=2):
            pass


# --- what it answers --------------------------------------------------------------------------------------------------


def test_every_answer_has_the_headers_that_keep_a_document_from_running(site: Site) -> None:
    page = site.send(f"/?token={site.token}", {"Host": "localhost"})
    policy = page.headers["Content-Security-Policy"]
    directives = dict(each.split(" ", 1) for each in policy.split("; "))
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    assert directives["frame-ancestors"] == directives["trusted-types"] == "'none'"
    assert directives["require-trusted-types-for"] == "'script'"
    assert directives["connect-src"] == "'self'"
    assert all(each.startswith("'sha256-") for each in directives["script-src"].split())
    answers = [page, site.ask("view"), site.ask("document", shard=0, row=0), site.ask("none"), site.send("/", {})]
    for answer in answers:
        headers = answer.headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "Set-Cookie" not in headers
    for answer in answers[1:3]:
        assert answer.headers["Content-Type"] == "application/json"
    assert not [text for text in HOSTILE if text.encode() in page.body]


@pytest.mark.parametrize(
    "target",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/static/../assets.py",
        "//etc/passwd",
        "/api/../api/view",
        "/api/__init__",
        "/api/",
        "/api/label",
        "/%00",
        "/" + "x" * 5000,
        "http://evil/api/view",
        "/api/view/",
    ],
)
def test_there_is_nothing_else_to_be_had(site: Site, target: str) -> None:
    answer = site.send(target, site.usual)
    assert answer.status in ((404, 200) if target.startswith("http:") else (404,))
    assert b"root:" not in answer.body


def test_what_is_no_http_is_refused_without_being_repeated(site: Site) -> None:
    for sent in (
        b"<script>alert(1)</script> HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x00\r\n\r\n",
        b"GET /<script> HTTP/1.1 x\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", site.port)) as raw:
            raw.sendall(sent)
            assert b"script" not in raw.makefile("rb").read()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("rows", {"first": "-1"}), ("rows", {"first": "1e3"}), ("rows", {"first": "9" * 30}),
        ("rows", {"sets": "none-0"}),
        ("document", {"shard": 99}), ("document", {"shard": 0, "row": 10**9}), ("document", {"row": "x"}),
        ("explain", {"shard": 5}), ("find", {"id": " "}), ("find", {"id": "x" * 20_000}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(site: Site, name: str, given: dict[str, object]) -> None:
    answer = site.ask(name, **given)
    assert answer.status == 400
    assert "expected" in answer.json["error"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"where": "__import__('os').system('touch /tmp/x')"}, "expected one of the functions"),
        ({"where": "document.__class__ is not None"}, "document.__class__"),
        ({"where": "().__class__.__bases__"}, "expected"),
        ({"where": "(lambda: 1)() > 0"}, "expected"),
        ({"where": "line_shape.liness > 3"}, "did you mean 'lines'?"),
        ({"where": "line_shap.lines > 3"}, "did you mean 'line_shape'?"),
        ({"where": "line_shape.lines"}, "expected a condition, true or false, got a value of type int"),
        ({"where": "'x' * 10 ** 10 == 'y'"}, "expected"),
        ({"where": "(" * 3000 + "1" + ")" * 3000}, "expected"),
        ({"where": "noise-1.noise.noise < 0"}, "`noise-1.KEY.field` must stand alone"),
        ({"where": "x" * 20_000}, "expected at most 10,000 characters"),
        ({"sort": "document.text"}, "expected a number, or null, got a value of type str"),
        ({"sort": "line_shape"}, "expected a number, or null"),
    ],
)  # fmt: skip
def test_an_expression_is_checked_and_never_run_as_python(site: Site, given: dict[str, str], error: str) -> None:
    answer = site.ask("rows", **given)
    assert answer.status == 400
    assert error in answer.json["error"]
    assert answer.json["error"].startswith(("filter: ", "sort: ", "where: "))


def test_documents_come_as_they_are_and_as_data(site: Site) -> None:
    rows = site.ok("rows", count=100)
    assert rows["total"] == len(TEXTS) + MANY
    assert [row["id"] for row in rows["rows"]][: len(TEXTS)] == [f"hostile-{i} <b>" for i in range(len(TEXTS))]
    for number, text in enumerate(TEXTS):
        found = site.ok("document", shard=0, row=number, all=1)
        assert found["text"] == text
        assert found["chars"] == len(text)
        assert [each["set"] for each in found["values"]] == ["noise-0", "noise-1", "shape-0"]
        assert found["fields"][0][0] == "note"
    part = site.ok("document", shard=0, row=TEXTS.index(LONG), sets="")
    assert part["text"] == LONG[:TEXT]
    assert part["values"] == []


def test_pages_go_on_over_shards_to_the_end(site: Site) -> None:
    ids = [id for first in range(0, 200, 20) for id in site.ids(first=first)]
    assert ids == [*(f"hostile-{i} <b>" for i in range(len(TEXTS))), *(f"b-{i}" for i in range(MANY))]


def test_filters_and_scores(site: Site) -> None:
    given = {"where": "line_shape.lines == 7 and document.source == 's'", "count": 100}
    assert site.ids(**given) == [f"b-{i}" for i in range(MANY) if i % 7 == 6]
    best = site.ok("rows", sort="document.chars", order="descending", count=2)
    assert [row["score"] for row in best["rows"]] == sorted(map(len, TEXTS), reverse=True)[:2]
    assert best["total"] == len(TEXTS) + MANY
    assert site.ids(where="document.source == 's'", sort="line_shape.lines", count=3) == ["b-0", "b-7", "b-14"]
    assert site.ids(where="'مرحبا' in document.text") == [f"hostile-{len(TEXTS) - 2} <b>"]
    assert site.ids(where="noise.noise < 0", sets="noise-1") == []
    shared = site.ok("rows", sort="1 / (document.chars - document.chars % 2 * document.chars)")
    odd = [len(text) for text in TEXTS if len(text) % 2 or not text]
    assert (shared["faults"], shared["without"] >= len(odd)) == ([], True), "a share of nothing is no number"


def test_a_jump_finds_an_id_by_the_row_index_or_says_how_to_look(site: Site) -> None:
    site.ok("rows")  # a source that has been seen
    assert site.ok("find", id="hostile-3 <b>")["places"] == [[0, 3]]
    lacking = site.ok("find", id="it's none")
    assert lacking["places"] is None
    assert site.ids(where=lacking["where"]) == []


def test_why_a_document_is_dropped(site: Site) -> None:
    row = next(i for i in range(MANY) if i % 7 == 6)
    [found] = site.ok("explain", shard=1, row=row)["streams"]
    assert found["dropped"] == "long </td><script>"
    assert found["steps"][0]["values"] == {"line_shape.lines": 7}
    assert site.ok("explain", shard=1, row=0)["streams"][0]["dropped"] is None
    assert site.ok("trace", shard=1, row=row)["streams"][0]["pieces"] == []


def test_tokens_of_a_document_are_traced(project: Project) -> None:
    pytest.importorskip("tokenizers")
    write_rows(project.documents / "a.jsonl.gz", [document("1", "one text"), document("2", "two texts")])
    tokenizer = str(Path(__file__).parents[1] / "taggers" / "files" / "tokenizer.json")
    project.config["mix"] = {"rules": [], "output": {"format": "dolma", "path": str(project.out)}}
    tokens = project.root / "tokens"
    project.config["tokenize"] = {"path": str(tokens), "tokenizer": tokenizer, "eod": "</s>", "files": "pbin"}
    project.ok("run")
    with serving(project.config, project.root / "labels.jsonl") as site:
        [found] = site.ok("trace", shard=0, row=1)["streams"]
    assert [(piece["file"], piece["row"], piece["span"]) for piece in found["pieces"]] == [
        (str(tokens / "tokens.pbin"), 2, [0, 9])
    ]


def test_documents_that_a_rule_drops_and_those_that_stay(site: Site) -> None:
    assert [each["name"] for each in site.ok("view")["mix"]["rules"]] == ["long </td><script>"]
    long = {f"b-{i}" for i in range(MANY) if i % 7 > 4}
    dropped = site.ids(rule=0, where="document.source == 's'", count=100)
    assert {*dropped} == long
    assert dropped == sorted(dropped, key=lambda each: int(each[2:]))
    assert site.ok("rows", rule="kept", where="document.source == 's'")["total"] == MANY - len(long)
    assert site.ids(rule=0, sort="document.chars", order="descending", count=1) == [f"hostile-{TEXTS.index(LONG)} <b>"]
    assert site.ask("rows", rule=1).status == 400


@pytest.mark.slow
def test_many_ask_at_once(site: Site) -> None:
    def one(number: int) -> list[str]:
        if number % 3 == 0:
            return site.ids(first=number, count=7)
        if number % 3 == 1:
            return [site.ok("document", shard=1, row=number)["id"]]
        return site.ids(where=f"line_shape.lines > {number % 5}", sort="document.chars", count=3, first=number)

    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(one, range(60))) == [one(number) for number in range(60)]


def test_an_answer_that_says_that_all_is_done_has_all(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query may end while its answer is put together: the page asks again only for what is not done."""
    run, places, begins = Query._run, Query.places, threading.Event()

    def early(query: Query, first: int, count: int) -> list[tuple[At, float | None]]:
        found = places(query, first, count)
        begins.set()
        wait_until(lambda: query.is_complete)
        return found

    def held(query: Query) -> None:
        begins.wait(PATIENCE)
        run(query)

    monkeypatch.setattr(Query, "places", early)
    monkeypatch.setattr(Query, "_run", held)
    monkeypatch.setattr(Query, "wait_for", lambda *_: None)
    where = "document.id != 'held'"
    answer = site.ask("rows", where=where, count=3).json
    assert (answer["rows"], answer["total"], answer["done"]) == ([], 0, False)
    assert len(site.ok("rows", where=where, count=3)["rows"]) == 3


def test_a_score_that_is_no_number_of_the_machine_is_told(site: Site) -> None:
    answer = site.ok("rows", sort="*".join(["9223372036854775807"] * 40))
    assert (answer["done"], answer["rows"], len(answer["faults"])) == (True, [], 2)
    assert "expected a number below 1e308, got a larger one" in answer["faults"][0]


@pytest.mark.slow
def test_a_filter_that_takes_very_long_holds_up_no_other(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slow(work: Any, rules: Any, computing: Any) -> Iterator[Any]:
        if work.sets[0].set == "noise-1":
            assert go_on.wait(PATIENCE)
        yield from blocks(work, rules, computing)

    monkeypatch.setattr(questions, "blocks", slow)
    late = {"where": "noise.noise >= 0", "sets": "noise-1"}
    assert not site.ask("rows", **late).json["done"]
    other = {"where": "line_shape.lines > 5", "sort": "document.chars"}
    try:
        assert wait_until(lambda: site.ask("rows", **other).json["done"])
        assert site.ok("explain", shard=1, row=3)["streams"][0]["id"] == "b-3"
        assert not site.ask("rows", **late).json["done"]
    finally:
        go_on.set()
    assert site.ok("rows", **late)["scanned"] == MANY + len(TEXTS)


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"at": [1, 0], "id": "b-1", "question": "verdict", "label": "keep"}, "expected the document 'b-1' at this"),
        ({"at": [1, 0], "id": "b-0", "question": "verdic", "label": "keep"}, "did you mean"),
        ({"at": [1, 0], "id": "b-0", "question": "verdict", "label": "maybe"}, "expected keep, drop or null"),
        ({"at": [1, 0], "id": "b-0", "question": "edu", "label": True}, "expected"),
        ({"at": [1, -1], "id": "b-0", "question": "verdict", "label": "keep"}, "expected `at`"),
        ({"at": [9, 0], "id": "b-0", "question": "verdict", "label": "keep"}, "expected a shard below 2"),
        ({"at": [1, 0], "id": "b-0", "question": "edu", "label": 10**400}, "expected 0.0, 1.0, 2.0 or null"),
        ({"at": [1, 1 << 40], "id": "b-0", "question": "edu", "label": 1}, "expected a row below"),
        ({"id": "b-0"}, "expected `at`"),
    ],
)  # fmt: skip
def test_a_label_that_fits_nothing_is_refused(site: Site, given: dict[str, object], error: str) -> None:
    answer = site.label(**given)
    assert answer.status == 400
    assert error in answer.json["error"]
    assert len(site.labels) == 0


def test_only_json_of_some_bytes_is_a_label(site: Site) -> None:
    typed = site.usual | {"Content-Type": "application/json"}
    assert site.send("/api/label", site.usual | {"Content-Type": "text/plain"}, "POST", b"{}").status == 415
    large = typed | {"Content-Length": str(1 << 40)}  # none of it is waited for
    assert site.send("/api/label", large, "POST").status == 413
    assert site.send("/api/label", typed, "POST", b"[" * 50_000).status == 400
    assert site.send("/api/label", typed, "POST", b"[]").status == 400
    assert site.send("/api/view", typed, "POST", b"{}").status == 404


def test_labels_are_given_changed_and_taken_away(site: Site) -> None:
    place = {"at": [1, 4], "id": "b-4"}
    assert site.label(**place, question="verdict", label="keep").json == {"labels": {"verdict": "keep"}, "documents": 1}
    assert site.label(**place, question="edu", label=2).json["labels"] == {"verdict": "keep", "edu": 2}
    assert site.label(**place, question="verdict", label="drop").json["labels"] == {"edu": 2, "verdict": "drop"}
    assert site.ok("document", shard=1, row=4)["labels"] == {"edu": 2, "verdict": "drop"}
    [line] = Path(site.labels.path).read_text().splitlines()
    assert json.loads(line)["data"] == {"document_id": "b-4", "source": "s"}
    for question in ("verdict", "edu"):
        last = site.label(**place, question=question, label=None)
    assert last.json == {"labels": {}, "documents": 0}
    assert Path(site.labels.path).read_bytes() == b""
