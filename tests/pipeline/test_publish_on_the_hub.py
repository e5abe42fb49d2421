"""``toolkit publish --to hf://…`` and ``toolkit fetch hf://…``, against a Hub on loopback that fails as it is told."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run
from tests.marks import slow
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.pipeline.hub_server import TOKEN, Hub, Repo, serving
from tests.pipeline.test_publish import ABOUT
from toolkit import cli
from toolkit.commands import publish
from toolkit.publish import hub as folder
from toolkit.storage import retrying

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload:DeprecationWarning"),  # the library's
]

TO = "hf://datasets/me/letters"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    monkeypatch.setattr(retrying, "UNKNOWN_HOST", 0.6)  # the first pause is of a quarter of a second
    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server
        huggingface_hub.close_session()


def _made(root: Path) -> Project:
    """The project of an output of two languages, below a folder."""
    output = {"format": "dolma", "path": str(root / "out"), "by": "metadata.language", "part_size": "4 kB"}
    rules = [{"drop": "metadata.language is None", "name": "none"}]
    config = {"dataset": str(root / "data"), "processes": 1, "about": ABOUT, "mix": {"rules": rules, "output": output}}
    return Project(root, lambda *words: Ran(cli.main([*map(str, words), "--quiet"]), "", ""), config)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose output has its descriptions."""
    made = _made(tmp_path_factory.mktemp("hub"))
    rows = [document(f"{i}", f"text {i} " * 50, metadata={"language": ["fr", "de"][i % 2]}) for i in range(30)]
    write_rows(made.documents / "a.jsonl.gz", rows)
    for command in ("mix", "card", "croissant"):
        made.ok(command)
    return made.root


@pytest.fixture
def mixed(output: Path, tmp_path: Path, run: Run) -> Project:
    """A copy of it."""
    shutil.copytree(output, tmp_path, dirs_exist_ok=True)
    project = _made(tmp_path)
    project.run = run
    return project


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found right once is not looked at again."""
    monkeypatch.setattr(publish, "_findings", lambda *_: [])


def _there(hub: Hub) -> dict[str, bytes]:
    repo = hub.repos["me/letters"]
    return {path: hub.content(repo.files[path]) for path in repo.files if path != ".gitattributes"}


def _whole(project: Project) -> dict[str, bytes]:
    return {path: (project.out / path).read_bytes() for path in tree(project.out)}


def _publish(project: Project, run: Run, *arguments: Any, give_up: float = 20) -> Ran:
    project.config["storage"] = {"give_up": give_up}
    return run("publish", "-c", project.yaml, "--to", TO, *arguments)


@pytest.mark.parametrize("in_pieces", [False, True])
def test_all_of_an_output_in_one_commit(mixed: Project, hub: Hub, run: Run, in_pieces: bool) -> None:
    hub.in_pieces = in_pieces
    dry = _publish(mixed, run, "--dry-run")
    assert (dry.code, hub.repos) == (0, {}), dry.err
    assert "would be published in hf://datasets/me/letters, a private dataset" in dry.out
    ran = _publish(mixed, run, "--json").succeeds()
    assert _there(hub) == _whole(mixed)
    repo = hub.repos["me/letters"]
    assert (repo.private, len(repo.commits)) == (True, 1)
    assert (ran.json["private"], ran.json["page"]) == (True, f"{hub.url}/datasets/me/letters")
    sent = hub.sent.copy()
    again = _publish(mixed, run).succeeds().shows(f"0 written, {len(_whole(mixed))} were there")
    assert (hub.sent, len(repo.commits)) == (sent, 1)
    assert TOKEN not in ran.out + ran.err + again.out + again.err
    assert not [path for path in mixed.root.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_a_public_one_is_fetched_by_anybody(
    mixed: Project, hub: Hub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "a public dataset" in _publish(mixed, run, "--public").out
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.chdir(mixed.root)
    hub.headers.clear()
    run("fetch", TO, "--label", "fr").succeeds()
    assert set(hub.headers) == {""}
    assert {path.partition("_sha256")[0].split("/")[-1][:2] for path in tree(mixed.root / "letters")} == {"fr"}
    assert run("validate", mixed.root / "letters").code == 0
    assert "expected hf://datasets/USER/NAME" in run("fetch", "hf://me/letters", "--label", "fr").err


@pytest.mark.usefixtures("checked")
def test_another_version_replaces_what_the_last_one_had(mixed: Project, hub: Hub, run: Run) -> None:
    assert _publish(mixed, run).code == 0
    hub.repos["me/letters"].files["LICENSE"] = b"mine"
    mixed.config["mix"]["rules"].append({"drop": "metadata.language == 'de'", "name": "de"})
    mixed.config["about"] = ABOUT | {"version": "2.0.0"}
    for command in ("mix", "card", "croissant"):
        mixed.ok(command)
    sent = len(hub.sent)
    ran = _publish(mixed, run, "--json").succeeds()
    assert _there(hub) == {**_whole(mixed), "LICENSE": b"mine"}
    assert {Path(path).name[:2] for path in ran.json["deleted"]} == {"de"}
    assert len(hub.sent) == sent, "parts of fr are those that were there"


@pytest.mark.usefixtures("checked")
def test_uploads_do_not_take_the_way_that_nothing_bounds(mixed: Project, hub: Hub, run: Run) -> None:
    """`hf_xet`, which comes with `huggingface_hub`, would ask for a token of its own, for minutes, deaf to signals."""
    from huggingface_hub import constants

    pytest.importorskip("hf_xet")
    before = constants.HF_HUB_DISABLE_XET
    _publish(mixed, run).succeeds()
    assert hub.asked["batch"]
    assert constants.HF_HUB_DISABLE_XET is before


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        pytest.param(kind, fault, marks=[] if (kind, fault) in (("put", 503), ("commit", "lost")) else pytest.mark.slow)
        for kind in ("look", "create", "tree", "preupload", "batch", "put", "verify", "commit")
        for fault in (429, 503, "lost")
    ],
)
def test_what_fails_for_a_while_is_asked_again(mixed: Project, hub: Hub, run: Run, kind: str, fault: int | str) -> None:
    hub.fails[kind] = [fault] * 2
    _publish(mixed, run).succeeds()
    assert _there(hub) == _whole(mixed)
    assert len(hub.repos["me/letters"].commits) == 1


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("create", 403, "expected a token that may write me/letters, got 403 (told to fail with 403)"),
        ("commit", 409, "got 409 another change at the same time"),
        *slow(
            ("look", 401, "expected a token that the Hub knows, got 401"),
            ("preupload", 403, "expected a token that may write me/letters"),
            ("tree", 404, "expected the dataset and its branch, got 404"),
            ("create", 429, "got 429 too many requests"),
            ("put", 403, "expected a token that may write"),
            ("put", 500, "got 500"),
            ("commit", 413, "expected the Hub to take the files, got 413"),
        ),
    ],
)
def test_what_stays_is_told_and_a_rerun_goes_on(
    mixed: Project, hub: Hub, run: Run, kind: str, status: int, said: str
) -> None:
    hub.repos["me/letters"] = Repo(private=True)
    if kind == "create":
        hub.repos.clear()
    hub.fails[kind] = [status] * 1000
    ran = _publish(mixed, run, give_up=0.01)
    assert ran.code in (1, 2)
    assert f"{TO}: " in ran.err
    assert said in ran.err
    assert "X-Amz-Signature" not in ran.err
    assert "Traceback" not in ran.err
    assert not hub.repos or not _there(hub), "nothing of it is seen"
    hub.fails.clear()
    sent = hub.sent.copy()
    assert _publish(mixed, run).code == 0
    assert _there(hub) == _whole(mixed)
    if kind == "commit":
        assert hub.sent == sent, "what was uploaded is not sent again"


@pytest.mark.usefixtures("checked")
def test_a_hub_that_hangs_is_left(mixed: Project, hub: Hub, run: Run) -> None:
    hub.fails["commit"] = ["hang"] * 1000
    ran = _publish(mixed, run, give_up=0.01).fails(1)
    assert hub.held.is_set()
    assert "run again when 127.0.0.1 answers" in ran.err


@pytest.mark.usefixtures("checked")
def test_no_network_no_token_and_what_is_not_ours(
    mixed: Project, hub: Hub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = hub.repos["me/letters"] = Repo(False, {"README.md": b"# mine"})
    assert "expected none, or a card that `toolkit card` wrote" in _publish(mixed, run).err
    repo.files = {"data/train.jsonl.gz": b""}
    assert "got a file that would be taken for its data" in _publish(mixed, run).err
    assert not repo.commits
    for to in ("hf://me/letters", "hf://datasets/me", "hf://datasets/me/../x"):
        run("publish", mixed.out, "--to", to).fails(2, "expected hf://datasets/USER/NAME")
    assert "--public: expected --to hf://" in run("publish", mixed.out, "--to", "x", "--public").err
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        ran = _publish(mixed, run, give_up=0.01)
    assert ran.code == 1
    assert "Connection refused" in ran.err
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    _publish(mixed, run).fails(2, "expected a token of the Hugging Face Hub, got none: `hf auth login`")


def test_findings_come_before_anything_is_made(mixed: Project, hub: Hub, run: Run) -> None:
    part = next(mixed.out.rglob("*.gz"))
    part.write_bytes(part.read_bytes() + b"x")
    ran = _publish(mixed, run)
    assert (ran.code, hub.repos, hub.sent) == (1, {}, {})
    assert "nothing is published" in ran.out


@pytest.mark.usefixtures("checked")
def test_many_files_take_several_commits_and_the_card_is_in_the_last(
    mixed: Project, hub: Hub, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "COMMIT", 3)
    hub.fails["commit"] = ["", 413]
    _publish(mixed, run).fails(1)
    assert (len(hub.repos["me/letters"].commits), "README.md" in _there(hub)) == (1, False)
    sent = hub.sent.copy()
    assert _publish(mixed, run).code == 0
    assert _there(hub) == _whole(mixed)
    assert hub.sent == sent
    assert len(hub.repos["me/letters"].commits) == 1 + -(-(len(_whole(mixed)) - 3) // 3)


def test_a_server_that_repeats_the_token_or_names_files_outside(
    mixed: Project, hub: Hub, run: Run, checked: None
) -> None:
    hub.echoes, hub.fails["look"] = True, [403]
    ran = _publish(mixed, run)
    assert ran.code != 0
    assert "told to fail with 403Bearer …" in ran.err
    assert TOKEN not in ran.out + ran.err
    outside = f"{'../' * 20}{str(mixed.root).lstrip('/')}/outside_sha256.txt"
    hub.repos["me/letters"] = Repo(True, {outside: b""})
    ran = _publish(mixed, run)
    assert "expected a relative path without empty parts, `.` and `..`" in ran.err
    assert not (mixed.root / "outside_sha256.txt").exists()
