"""What is run: the configurations of a checkout and of its pages, commands in their forms, and refusals."""

import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import yaml

from tests import errors, pages, test_own_data_page, test_pages, worlds
from tests.conftest import ROOT
from tests.pipeline.test_dolma import write_data
from tests.test_blocks import DONE, NAMED
from tests.test_plugin_pages import PLUGINS
from toolkit.plugins import default_name

FOLDER = Path(__file__).parent
CLOUDS = ("gs", "az")
"""Places whose cases are run if they are asked for."""
PLACES = ("disk", "bucket", *CLOUDS)
PROCESSES = (1, 2)
REFUSALS = FOLDER.parent / "errors" / "refusals.yaml"
ABSENT_ENDPOINT = "http://127.0.0.1:8000/v1"
"""The address of a language model in pages and tables; that of the test's server takes its place."""
Make = Callable[[Path], None]


class Line(NamedTuple):
    """A step of a case.

    Attributes:
        name: Name in reports.
        arguments: Command line of the toolkit.
        shell: Command of a shell, in place of a command line.
        file: Name and text of a file that is written first.
    """

    name: str
    arguments: tuple[str, ...] = ()
    shell: str = ""
    file: tuple[str, str] | None = None

    @property
    def command(self) -> str:
        """Return the name of the command."""
        return self.arguments[0] if self.arguments else ""


@dataclass(frozen=True)
class Case:
    """Lines that are run one after the other in a folder of their own.

    Attributes:
        part: configurations, commands or refusals.
        name: Name of the configuration, page or table.
        place: Place of all that lies below ``data/``: disk, bucket (S3), gs or az.
        processes: Number of processes.
        lines: Steps.
        prepare: Function that makes the files that are there before.
        begins_with_quickstart: Whether the dataset of the quickstart is there before, too.
    """

    part: str
    name: str
    place: str
    processes: int
    lines: tuple[Line, ...]
    prepare: Make
    begins_with_quickstart: bool = False

    DATA: ClassVar = re.compile(r"(?<![\w/.:-])data/")
    """Relative paths that lead to the place."""

    def __str__(self) -> str:
        return f"{self.name} {self.place} {self.processes}"

    def wanted(self, words: list[set[str]]) -> set[int]:
        """Return the numbers of the lines that have a word of each set: part, name, place, processes, or command."""
        names = {self.part, self.name, Path(self.name).name, Path(self.name).stem, self.place, str(self.processes)}
        return {n for n, line in enumerate(self.lines) if all({*names, line.command} & any_of for any_of in words)}


def with_processes(words: list[str], processes: int) -> tuple[str, ...]:
    """Return a command line that says how many processes it uses, if it has a configuration."""
    at = words.index("-c") + 2 if "-c" in words else len(words)
    return (*words[:at], *[f"processes={processes}"] * ("-c" in words), *words[at:])


# --- configurations of `configs/` -------------------------------------------------------------------------------------

RECORDED = ("fineweb-2", "gopher", "ml-filter-raw")
"""Recorded pages of oracles: what `raw/` has, texts in many languages that need no library for words."""
REAL = ("wet/hplt-sample200.warc.wet.gz", "wet/whirlwind.warc.wet.gz")
"""Real web pages in the folder of data."""
FROM_RAW = {"fineweb-2": "ingest=[{format: jsonl, from: raw/fineweb-2.jsonl, source: cc}]"}
"""Recipes that need libraries for languages of the sample."""


def inputs(folder: Path, *real: Path) -> None:
    """Write what recipes read: WET files, and JSON Lines with the pages of oracles."""
    (folder / "wet").mkdir(exist_ok=True)
    for path in [*sorted((ROOT / "configs/sample").glob("*.wet.gz")), *real]:
        shutil.copy(path, folder / "wet")
    for name in RECORDED:
        recorded = ROOT / f"tests/oracles/recorded/{name}.jsonl.gz"
        rows = [json.loads(line)["page"] for line in gzip.decompress(recorded.read_bytes()).splitlines()[:60]]
        rows = [row | {"id": f"{name}:{row['id']}"} for row in rows]  # oracles share pages
        (folder / "raw").mkdir(exist_ok=True)
        (folder / f"raw/{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _run(path: str, found: Mapping[str, Any], processes: int, *more: str, text: str = "") -> Iterator[Line]:
    """Yield the command lines that do all that a configuration says."""
    sections = [key for key in found if key in DONE | {"streams", "train"}]
    names = {"streams": "mix", "train": "train"}
    commands = list(dict.fromkeys(names.get(section, "run") for section in sections))
    few = ["mix.allow_empty=true"] * ("mix" in found)  # the data is small
    for number, command in enumerate(commands or ["config"]):
        line = (command, "-c", path, *few, f"processes={processes}", *more, "--json")
        file = (path, text) if text and number == 0 else None
        yield Line(shlex.join(line), line, file=file)


def recipes(tree: Path, data: Path | None) -> Iterator[tuple[str, Make, Callable[[int], list[Line]]]]:
    """Yield the recipes of a checkout: name, what makes their inputs, their lines by the number of processes."""
    real = [data / name for name in REAL if (data / name).exists()] if data else []
    for path in sorted((tree / "configs").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        found = yaml.safe_load(text)

        def lines(processes: int, name: str = path.stem, text: str = text, found: Any = found) -> list[Line]:
            more = [FROM_RAW[name]] if name in FROM_RAW else []
            ran = [*_run(f"{name}.yaml", found, processes, *more, text=text)]
            return [*ran, Line("validate", ("validate", "-c", f"{name}.yaml", *more, "--json"))]

        yield f"configs/{path.name}", inputs, lines
        if real and "format: wet" in text and path.stem not in FROM_RAW:
            yield f"configs/{path.name}+data", lambda folder: inputs(folder, *real), lines


# --- configurations of pages ------------------------------------------------------------------------------------------

YAML_ALONE = ("README.md", "CONTRIBUTING.md", "classifier-walk.md", "iterating.md", "own-model.md", "quickstart.md")
"""Pages whose commands are not typed: they install something, or take long and show what other cases do."""


def _plugins(folder: Path) -> None:
    (folder / "my").mkdir()
    for name, text in PLUGINS:
        (folder / "my" / f"{default_name(f'x:{name}')}.py").write_text(text, encoding="utf-8")
    (folder / "reviews.tsv").write_text("r1\t2024-05-17\tA café.\nr2\t2024-05-18\tToo loud.\n", encoding="utf-8")


def _annotated(folder: Path) -> None:
    shutil.rmtree(folder / "raw", ignore_errors=True)
    test_pages.make_annotations(folder)


def _walk(folder: Path) -> None:
    test_pages.make_walk(folder)
    rows = (json.dumps({"id": str(number), "tfidf": number % 7 / 2}) for number in range(160))
    (folder / "tfidf.jsonl").write_text("\n".join(rows) + "\n")


EXTRA: dict[str, tuple[Make, Mapping[str, Any]]] = {
    **worlds.EXTRA,
    "annotating.md": (test_pages.make_raw, {"dataset": "data/crawl"}),
    "annotation-files.md": (_annotated, {"dataset": "data/crawl"}),
    "bring-your-own-data.md": (test_own_data_page.make, {}),
    "classifier-walk.md": (_walk, {}),
    "coming-from-datatrove.md": (inputs, {}),
    "coming-from-ml-filter.md": (_annotated, {}),
    "coming-from-nemo-curator.md": (inputs, {}),
    "dolma.md": (lambda folder: write_data(folder / "data/web", "one"), {}),
    "embeddings.md": (test_pages.make_embedded, {}),
    "in-place.md": (test_own_data_page.make_hub, {}),
    "iterating.md": (inputs, {"dataset": "data/pages"}),
    "rules.md": (worlds.nothing, {"dataset": "data/quickstart", "tag": {"pii-0": "emails"}}),
    "writing-a-tagger.md": (_plugins, {"dataset": "data/quickstart"}),
    "writing-an-input-format.md": (_plugins, {}),
    "writing-an-output-format.md": (_plugins, {}),
}
"""What makes the files of pages, and the sections that complete fragments: as tests of the pages have it."""


class Reader:
    """A reader of a page, who saves configurations and types commands, as `tests.test_blocks.Session` does."""

    def __init__(self, page: Path, processes: int) -> None:
        self.lines: list[Line] = []
        self.fragments = 0
        self._processes = processes
        self._more = EXTRA.get(page.name, (worlds.nothing, {}))[1]
        self._waiting, self._unrun = "", ""
        self._names: set[str] = set()
        for block in pages.blocks(str(page)):
            if block.language == "yaml" and isinstance(yaml.safe_load(block.text), dict):
                self._configure()
                self._waiting, self._unrun = block.text, block.unrun
            elif block.language in ("sh", "bash", "text") and not block.unrun and page.name not in YAML_ALONE:
                script = any(line.endswith(("&", "\\")) for line in block.text.splitlines())
                whole = [pages.Shown(block.text, [])] if script and "$ " not in block.text else pages.commands(block)
                for shown in whole:
                    self._type(shown.command)
        self._configure()

    def _save(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return the text of the configuration that waits, and its values; a fragment gets what it leaves out."""
        found: dict[str, Any] = yaml.safe_load(self._waiting)
        whole = {"dataset", "documents", "streams"} & found.keys()
        missing = {} if whole else {key: value for key, value in self._more.items() if key not in found}
        if missing.get("dataset") == worlds.OWN:
            self.fragments += 1
            missing["dataset"] = f"{worlds.OWN}-{self.fragments}"
        text = (yaml.safe_dump(missing) * bool(missing) + self._waiting).replace("recipe:configs/", "recipe:")
        self._waiting = ""
        self._names.add(name)
        return text, found | missing

    def _configure(self) -> None:
        """Run the configuration that waits: no command has named it."""
        if self._waiting:
            own = NAMED.match(self._waiting)
            unrun = self._unrun
            name = own[1] if own else f"unnamed-{len(self._names)}.yaml"
            text, found = self._save(name)
            runs = bool({"dataset", "documents", "streams"} & found.keys()) and not unrun
            self.lines += _run(name, found if runs else {}, self._processes, text=text)

    def _type(self, command: str) -> None:
        if self._waiting and (named := re.search(r"-c (\S+\.yaml)", command)):
            own = NAMED.match(self._waiting)
            if named[1] == own[1] if own else named[1] not in self._names:
                self.lines.append(Line(f"save {named[1]}", file=(named[1], self._save(named[1])[0])))
        command = re.sub(r"\n    +", " ", command)
        words = shlex.split(command, comments=True)
        if (
            words[:1] == ["toolkit"]
            and "\n" not in command.strip()
            and not {"|", "&&", ">", "<", "&", ";"} & set(words)
        ):
            self.lines.append(Line(command, with_processes(words[1:], self._processes)))
        elif words:
            self.lines.append(Line(command, shell=command))


def documents_of(tree: Path) -> Iterator[tuple[str, Make, Callable[[int], list[Line]]]]:
    """Yield the pages of a checkout that have configurations, as `recipes` does."""
    for path in [*sorted((tree / "docs").glob("*.md")), tree / "README.md"]:
        reader = Reader(path, 1)
        if not any(line.file for line in reader.lines):
            continue
        made = EXTRA.get(path.name, (worlds.nothing, {}))[0]

        def prepare(folder: Path, made: Make = made, fragments: int = reader.fragments) -> None:
            made(folder)
            for number in range(1, fragments + 1):
                if (folder / worlds.OWN).exists():
                    shutil.copytree(folder / worlds.OWN, folder / f"{worlds.OWN}-{number}")

        yield str(path.relative_to(tree)), prepare, lambda processes, path=path: Reader(path, processes).lines  # type: ignore[misc]


# --- tables -----------------------------------------------------------------------------------------------------------


def table(name: str) -> dict[str, Any]:
    """Return a table of this folder."""
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return found


def commands(processes: int) -> list[Line]:
    """Return the lines of commands in their forms; a line with a configuration gets the number of processes."""
    found = table("commands.yaml")
    lines = [Line(f"save {name}", file=(name, text)) for name, text in found["files"].items()]
    for line in found["lines"]:
        lines.append(Line(line, with_processes(shlex.split(line), processes)))
    return lines


def refusals() -> list[Line]:
    """Return the wrong configurations and command lines of the small data set that need no other files."""
    return [
        Line(
            f"{entry['run']} {json.dumps(entry.get('with', {}), ensure_ascii=False)}",
            tuple(shlex.split(entry["run"])),
            file=("c.yaml", errors.configuration(path, entry)),
        )
        for path, entry in errors.entries()
        if path == REFUSALS and "files" not in entry
    ]


def cases(tree: Path, data: Path | None = None) -> list[Case]:
    """Return all cases of a checkout, the longest first.

    Args:
        tree: Checkout whose configurations and pages are run.
        data: Folder with real data, if there is one.
    """
    found = []
    for place in PLACES:
        for processes in PROCESSES:
            found.append(Case("commands", "commands", place, processes, tuple(commands(processes)), inputs))
            for name, prepare, lines in [*documents_of(tree), *recipes(tree, data)]:
                is_page = not name.startswith("configs/")
                steps = tuple(lines(processes))
                found.append(Case("configurations", name, place, processes, steps, prepare, is_page))
    wrong = refusals()
    begin = Line("tag", ("tag", "-c", "c.yaml"), file=("c.yaml", errors.configuration(REFUSALS, {})))
    for start in range(0, len(wrong), 50):
        chunk = (begin, *wrong[start : start + 50])
        found.append(Case("refusals", f"refusals {start}", "disk", 1, chunk, errors.write_documents))
    return found


def keep_models(folder: Path) -> None:
    """Let the models of pages be trained once, and kept in a folder: fastText gives others each time."""
    train = worlds._fasttext
    folder.mkdir(parents=True, exist_ok=True)
    lock = threading.Lock()
    forum = folder / "forum"
    if not forum.exists():
        script = next(block.text for block in pages.blocks("docs/own-model.md") if block.language == "python")
        with tempfile.TemporaryDirectory(dir=folder) as part:
            subprocess.run([sys.executable, "-c", script], cwd=part, check=True)
            shutil.copytree(part, forum)

    def kept(path: Path, *labels: str) -> None:
        model = folder / f"{'-'.join(labels)}.bin"
        with lock:
            if not model.exists():
                train(model, *labels)
        shutil.copy(model, path)

    worlds._fasttext = kept
    EXTRA["own-model.md"] = (lambda place: shutil.copytree(forum, place, dirs_exist_ok=True), {})  # type: ignore[assignment]
