"""Pages of a crawl by its index: all of them, byte for byte those of a whole ingest, from servers of all kinds."""

import gzip
import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toolkit
from tests.conftest import Ran
from tests.crawls import CRAWL, Crawl, make_crawl, write_cdxj
from tests.pipeline.conftest import Project, inputs_of, read_bytes, strays, tree
from tests.pipeline.test_crawl import run_and_kill
from tests.storage.web_server import Behaviour, web
from toolkit.data import row_index
from toolkit.data.dataset import open_dataset
from toolkit.data.schema import list_of
from toolkit.exchange.tables import Tables
from toolkit.ingest.index.columns import COLUMNS, LANGUAGES, Where
from toolkit.ingest.index.selecting import extremes_of
from toolkit.rules.checker import Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expressions import check_condition

pytestmark = pytest.mark.slow

OF_PLACE = ("warc_record_offset", "warc_record_length")
WHERE = '"bre" in content_languages and fetch_status == 200'


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    return make_crawl(tmp_path_factory.mktemp("crawl") / "www", dense=2)


def entry(base: object, **more: Any) -> dict[str, Any]:
    return {"format": "warc", "crawl": CRAWL, "base_url": str(base), "source": "cc", "where": WHERE, **more}


def documents(project: Project) -> dict[str, bytes]:
    """The lines of all documents, by the URL of the page."""
    lines = [line for path in project.documents.rglob("*.gz") for line in read_bytes(path).splitlines()]
    return {json.loads(line)["metadata"]["warc_headers"]["warc-target-uri"]: line for line in lines}


def pages(crawl: Crawl) -> list[dict[str, Any]]:
    return [row for row in crawl.wanted() if row["fetch_status"] == 200]


@pytest.fixture(scope="module")
def whole(crawl: Crawl, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The documents of a whole ingest of the crawl."""
    root = tmp_path_factory.mktemp("whole")
    given = {key: value for key, value in entry(crawl.root).items() if key != "where"}
    toolkit.ingest({"dataset": str(root / "data"), "executor": {"type": "in_process"}, "ingest": [given]})
    return documents(Project(root, lambda *_: Ran(0, "", "")))


def same(found: dict[str, bytes], whole: dict[str, bytes], rows: list[dict[str, Any]]) -> bool:
    return found == {row["url"]: whole[row["url"]] for row in rows}


def test_pages_are_those_of_a_whole_ingest_and_little_else_is_read(
    project: Project, crawl: Crawl, whole: dict[str, bytes]
) -> None:
    behaviour = Behaviour()
    with web(crawl.root, behaviour) as url:
        project.config["ingest"] = [entry(url)]
        plan = project.ok("ingest", "--dry-run", "--json").json
        assert [each.path for each in behaviour.bodies("warc.gz")] == [], "no text before it is wanted"
        assert not project.data.exists()
        behaviour.log.clear()
        assert project.ok("ingest").code == 0
        asked = behaviour.bodies("warc.gz")
        estimate = plan["selected"][f"warc {CRAWL} (source cc)"]
        assert estimate["all"]["pages"] == len(pages(crawl))
        assert estimate["all"]["bytes"] == sum(each.sent for each in asked)
        assert estimate["all"]["requests"] == len(asked)
        index = behaviour.bodies(".parquet")
        assert sum(each.sent for each in index) <= sum(path.stat().st_size for path in crawl.index()), "each byte once"
        assert [each["name"] for each in estimate["by_language"]] == ["bre"]
        assert sum(each["pages"] for each in estimate["by_host"]) <= len(pages(crawl))
        dense = next(str(path.relative_to(crawl.root)) for path in crawl.warcs() if "00002" in path.name)
        assert [each.range for each in asked if each.path.endswith(dense)] == [None], "one third is wanted"
        behaviour.log.clear()
        assert project.ok("ingest", "--json").json["skipped"] == 2
        assert behaviour.bodies("warc.gz") == []
        behaviour.log.clear()
        assert "all is done" in project.ok("status").out
        assert behaviour.log == []
    assert same(documents(project), whole, pages(crawl))
    assert f"cc/{dense.removeprefix('crawl-data/').replace('.warc.gz', '.jsonl.gz')}" in tree(project.documents)
    assert strays(project.root) == []


def test_a_condition_over_a_column_that_no_page_needs(project: Project, crawl: Crawl, whole: dict[str, bytes]) -> None:
    project.config["ingest"] = [entry(crawl.root) | {"where": 'fetch_status == 200 and url_host_tld == "bzh"'}]
    project.ok("ingest")
    rows = [row for row in crawl.rows["warc"] if row["fetch_status"] == 200 and row["url_host_tld"] == "bzh"]
    assert rows
    assert same(documents(project), whole, rows)


def test_shards_are_packs_in_the_order_of_the_index_whatever_works_on_them(
    project: Project, crawl: Crawl, tmp_path: Path
) -> None:
    where = entry(crawl.root, where='"eng" in content_languages', pack="10 kB")
    assert project.ingest(where).code == 0
    found = tree(project.documents)
    assert len(found) > 5
    urls = [
        json.loads(line)["metadata"]["warc_headers"]["warc-target-uri"]
        for name in sorted(found)
        for line in read_bytes(project.documents / name).splitlines()
    ]
    rows = [row for row in crawl.wanted("eng") if row["fetch_status"] == 200]
    assert urls == [row["url"] for row in rows]
    other = Project(tmp_path / "other", project.run, project.config | {"dataset": str(tmp_path / "other/data")})
    other.root.mkdir()
    other.config |= {"executor": {"type": "local"}, "processes": 3}
    with web(crawl.root, Behaviour({"drop": 0.2, "503": 0.1}, seed=3)) as url:
        assert other.ingest(where | {"base_url": url, "connections": 5, "rate": 1000}).code == 0
    assert tree(other.documents) == found


@pytest.mark.parametrize("seed", range(3))
def test_a_bad_connection_changes_nothing(
    seed: int, project: Project, crawl: Crawl, whole: dict[str, bytes], naps: list[float]
) -> None:
    chances = {"drop": 0.3, "reset": 0.1, "403": 0.05, "429": 0.05, "500": 0.05, "503": 0.05}
    behaviour = Behaviour(chances, seed=seed)
    behaviour.ranges = "ignored" if seed == 1 else "right"
    with web(crawl.root, behaviour) as url:
        assert project.ingest(entry(url)).code == 0
    assert same(documents(project), whole, pages(crawl))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row, other: row.update({key: other[key] for key in OF_PLACE}), "got the record of https://"),
        (lambda row, _: row.update(warc_record_offset=row["warc_record_offset"] + 7), "got no gzip member"),
        (lambda row, _: row.update(warc_record_length=row["warc_record_length"] - 5), "the beginning of a gzip member"),
        (lambda row, _: row.update(warc_record_length=row["warc_record_length"] + 40), "got "),
        (lambda row, _: row.update(warc_record_length=0), "a record of 0 bytes at byte"),
        (lambda row, _: row.update(warc_record_offset=10**9), "got only 0 bytes: the file ends there"),
        (lambda row, _: row.update(warc_filename="crawl-data/x/y.warc.gz"), "got no such file"),
        (lambda row, _: row.update(content_digest="A" * 32), f"in place of {'A' * 32}"),
    ],
)  # fmt: skip
def test_an_index_that_lies_is_an_error_and_its_record_is_kept_aside(
    change: Callable[[dict[str, Any], dict[str, Any]], None], message: str, project: Project, crawl: Crawl,
    whole: dict[str, bytes], naps: list[float],
) -> None:  # fmt: skip
    rows = [dict(row) for row in pages(crawl) if row["warc_filename"] in str(crawl.warcs()[0])][:6]
    good = rows[:2] + rows[3:]
    change(rows[2], rows[0])
    index = project.root / "index.parquet"
    pq.write_table(pa.Table.from_pylist(rows), index)
    with web(crawl.root, Behaviour()) as url:
        lying = {key: value for key, value in entry(url, index=str(index)).items() if key != "crawl"}
        project.ingest(lying).fails(1, f"expected the record of {rows[2]['url']} in {url}", message)
        assert not list(project.documents.rglob("*.gz"))
        assert project.ingest(lying | {"on_error": "skip", "max_rejected": 0.5}).code == 0
    assert same(documents(project), whole, good)
    (made,) = inputs_of(project).values()
    assert made.counts["rejected.index"] == 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"ranges": "wrong"}, "expected the bytes from"),
        ({"chances": {"404": 1.0}}, "got no such file"),
        ({"chances": {"503": 1.0}}, "expected the file, got the answer 503 Service Unavailable"),
    ],
)
def test_a_server_that_lies_is_an_error_that_names_the_file(
    how: dict[str, Any], message: str, project: Project, crawl: Crawl, naps: list[float]
) -> None:
    behaviour = Behaviour(only="00001.warc.gz")
    with web(crawl.root, behaviour) as url:
        for name, value in how.items():
            setattr(behaviour, name, value)
        ran = project.ingest(entry(url))
    assert ran.code == 1
    assert "00001.warc.gz" in ran.err
    assert message in ran.err


def test_a_redirect_elsewhere_gives_no_page_of_somebody_else(project: Project, crawl: Crawl) -> None:
    behaviour = Behaviour(only="00001.warc.gz")
    with web(crawl.root, Behaviour()) as other, web(crawl.root, behaviour) as url:
        behaviour.elsewhere = other + str(crawl.warcs()[0].relative_to(crawl.root))
        ran = project.ingest(entry(url))
    assert ran.code == 1
    assert "00001.warc.gz at bytes" in ran.err


# --- what is selected -------------------------------------------------------------------------------------------------


def chosen(project: Project, crawl: Crawl, **more: Any) -> list[str]:
    """The URLs that an entry selects, in the order of the index."""
    given = {key: value for key, value in entry(crawl.root, **more).items() if value is not None}
    project.ingest(given).succeeds()
    found = documents(project)
    return [row["url"] for row in crawl.rows["warc"] if row["url"] in found]


def test_limits_take_the_first_of_the_index_or_a_draw(project: Project, crawl: Crawl) -> None:
    every = [row["url"] for row in pages(crawl)]
    assert chosen(project, crawl, max_documents=7) == every[:7]
    assert chosen(project, crawl, max_documents=9) == every[:9], "the first stay as they are"
    size = sum(row["warc_record_length"] for row in pages(crawl)[:12])
    assert chosen(project, crawl, max_bytes=size) == every[:12]
    drawn = {}
    for seed in (1, 2):
        other = Project(
            project.root / f"{seed}", project.run, project.config | {"dataset": f"{project.root}/{seed}/data"}
        )
        other.root.mkdir()
        drawn[seed] = chosen(other, crawl, max_documents=20, seed=seed)
        assert len(drawn[seed]) == 20
    assert drawn[1] != drawn[2]


def test_equal_pages_are_fetched_once(project: Project, tmp_path: Path) -> None:
    def text(chosen: random.Random, language: str) -> str:
        return "\n".join(["ar memes pennad skrid eo hemañ, ha ne cheñch ket"] * chosen.randrange(1, 4))

    crawl = make_crawl(tmp_path / "www", files=2, pages=40, share=0.5, text=text, hosts=1)
    rows = {row["content_digest"]: row for row in reversed(pages(crawl))}
    found = chosen(project, crawl, distinct="content_digest")
    assert found == [row["url"] for row in pages(crawl) if rows[row["content_digest"]] is row]
    plan = project.ok("ingest", "--dry-run", "--json").json["selected"]
    assert [each["equal"] for each in plan.values()] == [len(pages(crawl)) - len(found)]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_list_of_urls_hosts_and_domains(parts: int, project: Project, tmp_path: Path) -> None:
    crawl = make_crawl(tmp_path / "www", files=2, pages=50, parts=parts, groups=7)
    good = [row for row in crawl.rows["warc"] if row["fetch_status"] == 200]
    path = tmp_path / "hosts.txt"
    hosts = ["www.site4.bzh", "site7.bzh", "SITE9.com", "unknown.example"]
    path.write_text("\n".join([*hosts, "", good[-1]["url"], "ite1.bzh"]))
    wanted = [
        row["url"]
        for row in good
        if row["url_host_name"].removeprefix("www.") in ("site4.bzh", "site7.bzh", "site9.com")
    ]
    assert chosen(project, crawl, where=None, urls=str(path)) == [*wanted, good[-1]["url"]]
    path.write_text("a b\n")
    project("ingest").fails(2, f"{path}:1: expected a URL, a host or a domain, got 'a b'")


@pytest.mark.parametrize("kind", ["folder", "glob", "file", "list", "cdxj", "cdxj of the crawl"])
def test_an_index_elsewhere(kind: str, project: Project, crawl: Crawl, whole: dict[str, bytes], tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    for number, path in enumerate(crawl.index()):
        (index / f"{number}.parquet").write_bytes(path.read_bytes())
    places = {"folder": index, "glob": index / "*.parquet", "file": index / "0.parquet", "cdxj": index / "cdx-00000.gz"}
    places["list"] = crawl.root / "crawl-data" / CRAWL / "cc-index-table.paths.gz"
    given = {key: value for key, value in entry(crawl.root).items() if key != "crawl"}
    if kind.startswith("cdxj"):
        write_cdxj(crawl, places["cdxj"])
    rows = pages(crawl)
    if kind == "file":
        urls = set(pq.read_table(places["file"])["url"].to_pylist())
        rows = [row for row in rows if row["url"] in urls]
    if kind == "cdxj of the crawl":
        (tmp_path / "crawl-data" / CRAWL).mkdir(parents=True)
        (tmp_path / "crawl-data" / CRAWL / "cc-index.paths.gz").write_bytes(gzip.compress(b"index/cdx-00000.gz\n"))
        for name in crawl.root.glob(f"crawl-data/{CRAWL}/segments"):
            (tmp_path / "crawl-data" / CRAWL / "segments").symlink_to(name)
        given |= {"crawl": CRAWL, "base_url": str(tmp_path)}
    else:
        given["index"] = str(places[kind])
    project.ingest(given).succeeds()
    assert same(documents(project), whole, rows)


@pytest.mark.parametrize("selected", [True, False])
def test_robots_of_exactly_the_hosts_of_the_dataset(selected: bool, project: Project, crawl: Crawl) -> None:
    robots = {**entry(crawl.root, subset="robotstxt", source="robots"), "format": "warc"}
    del robots["where"]
    first = entry(crawl.root)
    if not selected:
        path = crawl.warcs()[0]
        first = {"format": "warc", "from": str(path), "source": "cc"}
        assert project.ingest(robots).code == 2
        assert project.ingest(first).code == 0
    project.config["ingest"] = [robots, first]
    plan = project.ok("ingest", "--dry-run", "--json").json["selected"]
    project.ok("ingest")
    found = {json.loads(line)["text"] for line in documents(project).values() if b'"source":"robots"' in line}
    hosts = {url.split("/")[2] for url, line in documents(project).items() if b'"source":"cc"' in line}
    assert found == {f"User-agent: *\nDisallow: /{host}" for host in hosts} or found == {
        f"User-agent: *\nDisallow: /{host}\n" for host in hosts
    }
    assert next(each["all"]["pages"] for name, each in plan.items() if "robots" in name) == len(hosts)


@pytest.mark.parametrize("how", ["selected", "whole"])
def test_the_row_index_keeps_where_each_record_is(how: str, project: Project, crawl: Crawl) -> None:
    given = entry(crawl.root, shard_size="20 kB")
    if how == "whole":
        del given["where"]
    assert project.ingest(given).code == 0
    dataset = open_dataset(str(project.data), None, None)
    by_place = {
        (str(crawl.root / row["warc_filename"]), row["warc_record_offset"], row["warc_record_length"]): row["url"]
        for row in crawl.rows["warc"]
    }
    shards = dataset.shards()
    assert len(shards) > 2
    for shard in shards:
        rows = [json.loads(line) for line in read_bytes(project.documents / shard).splitlines()]
        urls = [row["metadata"]["warc_headers"]["warc-target-uri"] for row in rows]
        assert [by_place[place] for place in row_index.places(dataset, shard) if place] == urls


# --- the expression ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        WHERE,
        '"bre" not in content_languages or fetch_status != 200',
        'content_languages == ["bre", "fra"]',
        'len(content_languages) == 2 and content_languages[0] == "bre"',
        'any(each in ["bre", "deu"] for each in content_languages)',
        'all(startswith(each, "b") for each in content_languages if each != "fra")',
        'url_host_tld in ["bzh", "org"] and not url_host_tld == "org"',
        'url_host_tld == "bzh" or len(content_languages) == 0',
        'startswith(url_surtkey, "bzh,site4")',
        'url_surtkey < "bzh,site5" and url_surtkey >= "bzh,site13)/5"',
        'matches(url, "[0-9]a$") or endswith(lower(url), "F")',
        '"site3" in url and url_port is None',
        "url_query is not None and url_query == url",
        "warc_record_length // 7 % 3 == 1 and -warc_record_length % 5 > 2",
        "max(warc_record_length, 900) - min(3, 5) > 1000 and abs(-2) * 2 == 4",
        '(url if fetch_status == 404 else url_path) + "x" > "https"',
        'crawl == "CC-MAIN-2025-30" and subset == "warc"',
        "200 <= fetch_status < 300 and content_truncated != \"length\"",
        'fetch_time == "2025-07-14T01:02:03Z"',
    ],
)  # fmt: skip
def test_a_condition_says_in_sql_what_it_says_in_rules(where: str, crawl: Crawl) -> None:
    types = {name: Name(type_, name) for name, type_ in COLUMNS.items()}
    types[LANGUAGES] = Name(list_of(COLUMNS["url"]), LANGUAGES)
    checked = check_condition(where, types)
    function = compile_function(checked.code, tuple(COLUMNS))
    constants = {"crawl": CRAWL, "subset": "warc", "fetch_time": "2025-07-14T01:02:03Z"}
    expected, found = [], []
    for path in crawl.index():
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            table = file.read_row_group(number)
            for row in table.to_pylist():
                row |= constants | {LANGUAGES: (row[LANGUAGES] or "").split(",") if row[LANGUAGES] else []}
                with suppress(IndexError):  # of a page without languages, which SQL takes for false
                    expected += [row["url"]] * function(*(row.get(name) for name in COLUMNS))
            with Tables(0) as tables:
                made = Where(where, tables.types(table), CRAWL)
                if made.may_hold(extremes_of(file.metadata.row_group(number))):
                    for name in ("crawl", "subset"):
                        table = table.append_column(name, pa.repeat(constants[name], table.num_rows))
                    sql = f"SELECT url FROM batch WHERE coalesce({made.sql}, false)"
                    found += [url for (url,) in tables.run(sql, made.parameters, batch=table).fetchall()]
    assert sorted(found) == sorted(expected)
    assert found or "is not None" in where, sql


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"where": "content_language == 'bre'"}, "got 'content_language'; did you mean 'content_languages'?"),
        ({"where": "sum([1]) == 1"}, "expected an expression that an index can answer, got `sum([1])`"),
        ({"where": "url == '); DROP TABLE selected; --'"}, "DROP TABLE selected; --'`, got none in 2 files"),
        ({"where": "content_truncated is None"}, "content_truncated, which begins with CC-MAIN-2019-47"),
        ({"where": "warc_record_id == 'x'"}, f"which begins with CC-MAIN-2026-30; that of {CRAWL} has none"),
        ({"subset": "crawldiagnostics"}, f"expected an index of {CRAWL} with files of the subset crawldiagnostics"),
        ({"urls": "none.txt"}, "expected a file of URLs, hosts or domains, got no such file at none.txt"),
    ],
)  # fmt: skip
def test_what_cannot_be_selected_is_refused(
    change: dict[str, Any], message: str, project: Project, tmp_path: Path
) -> None:
    crawl = make_crawl(tmp_path / "www", files=1, pages=5, leave_out=("content_truncated",))
    given = {key: value for key, value in (entry(crawl.root) | change).items() if value is not None}
    project.ingest(given).fails(2, message)
    assert not project.data.exists()


# --- runs -------------------------------------------------------------------------------------------------------------


def test_another_condition_is_another_dataset_or_replaces_it(project: Project, crawl: Crawl) -> None:
    assert project.ingest(entry(crawl.root)).code == 0
    project.ingest(entry(crawl.root, where='"deu" in content_languages')).fails(
        2, "was ingested with other settings", 'where: \'"bre" in content_languages'
    )
    assert "missing" in project.run("status", "-c", project.yaml).out
    project.ok("ingest", "--overwrite")
    assert documents(project).keys() == {row["url"] for row in crawl.wanted("deu") if row["fetch_status"] == 200}
    project.config["ingest"][0] |= {"max_documents": 3}
    project.ok("ingest")
    assert len(documents(project)) == 3


def test_packs_of_a_smaller_selection_are_named_when_their_documents_go(project: Project, crawl: Crawl) -> None:
    some = entry(crawl.root, where='"deu" in content_languages', pack="10 kB")
    project.ingest(some).succeeds()
    number = len(tree(project.documents))
    project.config["ingest"] = [some | {"max_documents": 3}]
    result = project.ok("ingest", "--json").json
    assert len(documents(project)) == 3
    assert [path.rpartition("#")[2] for path in result["lost"]] == [f"warc-{n:05}" for n in range(1, number)]
    project.config["ingest"] = [some]
    assert project.ok("ingest", "--json").json["lost"] == []
    project.config["ingest"] = [some | {"max_documents": 3}]
    assert "#warc-00001" in project.ok("ingest").out


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_are_killed_at_random_end_with_the_same_bytes(
    seed: int, project: Project, crawl: Crawl, whole: dict[str, bytes]
) -> None:
    behaviour = Behaviour({"drop": 0.3, "503": 0.1}, seed=seed, rate=30_000)
    chosen = random.Random(seed)
    with web(crawl.root, behaviour) as url:
        project.config["ingest"] = [entry(url, pack="20 kB")]
        for _ in range(4):
            moment = time.monotonic() + chosen.uniform(0.5, 2.5)
            run_and_kill(project, lambda moment=moment: time.monotonic() > moment)
        behaviour.rate, behaviour.chances = 0, {}
        project.ok("ingest")
    assert same(documents(project), whole, pages(crawl))
    assert strays(project.data) == []


def test_shares_of_a_job_fetch_each_page_once(project: Project, crawl: Crawl, whole: dict[str, bytes]) -> None:
    project.config["ingest"] = [entry(crawl.root, pack="10 kB")]
    for share in ("0/2", "1/2"):
        project.ok("ingest", "--shard", share)
    assert same(documents(project), whole, pages(crawl))
    assert "all is done" in project.ok("status").out
