"""Configuration: YAML without surprises, and errors that name file, line, key and what was meant."""

import json
from contextlib import suppress
from typing import Annotated, Any

import msgspec
import pytest

from tests.conftest import ROOT
from toolkit import reference
from toolkit.config import settings as config
from toolkit.config.redaction import conceal, conceal_override
from toolkit.config.settings import (
    Config,
    ConfigNode,
    ConfigStruct,
    convert,
    dump,
    load,
    load_source,
    override,
    parse,
    show,
    split,
)
from toolkit.errors import ConfigError, MissingExtra
from toolkit.ingest.reader import READERS
from toolkit.mix.writer import WRITERS
from toolkit.plugins import Kind
from toolkit.storage_options import Size


class Inner(ConfigStruct):
    min_chars: Annotated[int, msgspec.Meta(ge=0)] = 0
    labels: list[str] = []


class Outer(ConfigStruct):
    name: str
    inner: Inner = Inner()
    many: list[Inner] = []
    size: Size = Size(1)


def refused(text: str, type_: Any = Outer, **options: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        convert(parse(text, "c.yaml"), type_, **options)
    assert raised.value.exit_code == 2
    return str(raised.value)


# --- YAML -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("NO", "NO"),
        ("yes", "yes"),
        ("on", "on"),
        ("y", "y"),
        ("'true'", "true"),
        ("tRUE", "tRUE"),
        ("3", 3),
        ("1_000", 1000),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("1E9", 1e9),
        (".5", 0.5),
        (".inf", float("inf")),
        ("1.1.1", "1.1.1"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("~", None),
        ("null", None),
        ("1 GB", "1 GB"),
        (r'"\ud83d\ude00"', "😀"),
        ("lid.176.ftz", "lid.176.ftz"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    found = parse(f"key: {text}").value["key"]
    assert (found, type(found)) == (value, type(value))


def test_languages_stay_words_also_as_keys_and_in_lists() -> None:
    assert parse("no: [no, on, off, y, n, yes]").value == {"no": ["no", "on", "off", "y", "n", "yes"]}


def test_a_key_given_twice_is_an_error_at_its_second_line() -> None:
    with pytest.raises(ConfigError, match=r"^c\.yaml:4: tag\.a-0: expected each key once, got it twice$"):
        parse("tag:\n  a-0: noise\n  b-0: noise\n  a-0: line_shape\n", "c.yaml")


def test_a_key_that_is_given_again_as_a_surrogate_pair_is_an_error() -> None:
    with pytest.raises(ConfigError, match="expected each key once, got it twice"):
        parse('{"\\ud83d\\ude00": "a", "😀": "b"}', "c.yaml")


@pytest.mark.parametrize(
    ("text", "line"), [("a: [1\nb: 2", 2), ("a: 1\n  b: 2", 2), ("a: !thing b", 1), ("a: 1\n---\nb: 2", 2)]
)
def test_what_is_not_yaml_is_an_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match=rf"^c\.yaml:{line}: expected YAML, got: "):
        parse(text, "c.yaml")


@pytest.mark.parametrize("text", [r'b: "\ud83d"', r'b: ["x\ude00\ud83d"]', r'"\udfff": 1', "b: '${NOT_UTF8}'"])
def test_half_of_a_surrogate_pair_is_no_character(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOT_UTF8", "\udcff")
    with pytest.raises(ConfigError, match=r"^c\.yaml:2: .*: expected characters, got half of a surrogate pair"):
        parse(f"a:\n  - {{{text}}}", "c.yaml")


def test_an_empty_or_missing_file_is_an_error(tmp_path: Any) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    with pytest.raises(ConfigError, match=r"empty\.yaml: expected settings, got an empty file"):
        load_source(str(tmp_path / "empty.yaml"), [])
    with pytest.raises(ConfigError, match=r"none\.yaml: expected a readable YAML file, got: No such file"):
        load(str(tmp_path / "none.yaml"))
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:1: expected a readable YAML file, got: 'utf-8'"):
        load(str(tmp_path / "latin.yaml"))


def test_texts_take_values_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUS_ROOT", "/data")
    monkeypatch.delenv("NOT_SET", raising=False)
    assert parse("a: ['${CORPUS_ROOT}/x', $CORPUS_ROOT, '${}', 5]").value == {
        "a": ["/data/x", "$CORPUS_ROOT", "${}", 5]
    }
    with pytest.raises(ConfigError, match=r"^c\.yaml:2: b\.c: expected the environment variable NOT_SET to be set$"):
        parse("a: 1\nb: {c: '${NOT_SET}'}", "c.yaml")


# --- typed ------------------------------------------------------------------------------------------------------------


def test_settings_are_typed() -> None:
    found = convert(parse("{name: no, inner: {labels: [no]}, many: [{min_chars: 3}], size: 2 KiB}"), Outer)
    assert found == Outer("no", Inner(labels=["no"]), [Inner(3)], Size(2048))
    assert convert(parse(dump(found)), Outer) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inner: {}", "c.yaml:1: expected the option 'name', which is missing"),
        ("name: 3", "c.yaml:1: name: expected a text, got 3; write it in quotes"),
        ("name: 23.10", "c.yaml:1: name: expected a text, got 23.1; write it in quotes"),
        ("name: .inf", "c.yaml:1: name: expected a text, got inf; write it in quotes"),
        ("name: true", "c.yaml:1: name: expected a text, got true"),
        (
            "name: a\ninner:\n  min_chars: -1",
            "c.yaml:3: inner.min_chars: expected a whole number of at least 0, got -1",
        ),
        ("name: a\nmany:\n- {}\n- min_chars: x", "c.yaml:4: many[1].min_chars: expected a whole number, got 'x'"),
        ("name: a\ninner: {labels: [a, 1]}", "c.yaml:2: inner.labels[1]: expected a text, got 1; write it in quotes"),
        ("name: a\nsize: 3 XB", "c.yaml:2: size: expected a size such as 1000000, 500 MB or 64 MiB, got '3 XB'"),
        ("- name", 'c.yaml:1: expected a mapping, got ["name"]'),
    ],
)
def test_errors_name_file_line_key_and_what_was_expected(text: str, message: str) -> None:
    assert refused(text) == message


def test_unknown_keys_are_refused_with_what_was_meant() -> None:
    assert refused("nam: a") == "c.yaml:1: unknown option 'nam'; did you mean 'name'?"
    nested = refused("name: a\ninner:\n  labels: []\n  min_char: 3", subject="tagger x")
    assert nested == "c.yaml:4: inner: unknown option 'min_char' of tagger x; did you mean 'min_chars'?"
    assert refused("name: a\ninner: {zzz: 3}") == "c.yaml:2: inner: unknown option 'zzz'; known: labels, min_chars"
    assert refused("zzz: 3", ConfigStruct) == "c.yaml:1: unknown option 'zzz'; there are none"


def test_the_top_level_refuses_unknown_sections() -> None:
    assert refused("dataset: x\nmixx: {}", Config) == "c.yaml:2: unknown option 'mixx'; did you mean 'mix'?"
    assert (
        refused("dataset: x\nprocesses: 0", Config)
        == "c.yaml:2: processes: expected a whole number of at least 1, got 0"
    )
    assert convert(parse("dataset: x"), Config).max_document_bytes == 100_000_000


def test_a_part_of_a_source_names_its_place_in_the_whole() -> None:
    source = parse("tag:\n  a-0:\n  - noise\n  - {tagger: x}\n", "c.yaml")
    part = source.at("tag", "a-0").at(1)
    assert part.value == {"tagger": "x"}
    assert str(part.error(("tagger",), "bad")) == "c.yaml:4: tag.a-0[1].tagger: bad"
    taken, rest = split(part, {"tagger": None, "as": "alias"})
    assert (taken, rest.value) == ({"tagger": "x", "as": "alias"}, {})
    assert show(("tag", "a-0", 1, "x")) == "tag.a-0[1].x"


# --- overrides --------------------------------------------------------------------------------------------------------

TEXT = "processes: 1\ntag:\n  a-0: {tagger: x}\n  b-0: [x, {tagger: y, n: 1}]\n  c-0: x\n"


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("processes=8", ("processes",), 8),
        ("new.section.key=a", ("new", "section", "key"), "a"),
        ("tag.a-0.model=m.ftz", ("tag", "a-0"), {"tagger": "x", "model": "m.ftz"}),
        ("tag.b-0.1.n=2", ("tag", "b-0", 1, "n"), 2),
        ("tag.b-0.0={tagger: z}", ("tag", "b-0", 0), {"tagger": "z"}),
        ("tag.c-0.model=no", ("tag", "c-0"), {"tagger": "x", "model": "no"}),
        ("tag.c-0=", ("tag", "c-0"), None),
        ("rule=a == 1 and b", ("rule",), "a == 1 and b"),
    ],
)
def test_overrides_follow_dots_and_indexes(assignment: str, path: tuple[str | int, ...], value: object) -> None:
    source = parse(TEXT)
    override(source, assignment)
    assert source.at(*path).value == value


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("processes", "expected key=value, got 'processes'"),
        ("=3", "expected key=value, got '=3'"),
        ("tag.b-0.2=x", "expected an index below 2 of tag.b-0"),
        ("tag.b-0.x=x", "expected an index below 2 of tag.b-0"),
        ("processes.x=1", "expected processes to have keys, got 1"),
        ("a=[1", "command line: a:1: expected YAML"),
    ],
)
def test_overrides_that_lead_nowhere_are_errors(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        override(parse(TEXT), assignment)
    assert message in str(raised.value)


def test_a_file_of_nothing_can_be_overridden(tmp_path: Any) -> None:
    (tmp_path / "c.yaml").write_text("")
    source = load_source(str(tmp_path / "c.yaml"), ["dataset=x", "processes=2"])
    found = convert(source, Config)
    assert (found.dataset, found.processes) == ("x", 2)
    assert isinstance(source, ConfigNode)


def test_an_error_in_an_override_does_not_name_a_line_of_the_file() -> None:
    source = parse(TEXT, "c.yaml")
    override(source, "processes=many")
    with pytest.raises(ConfigError, match=r"^command line: processes: expected a whole number, got 'many'"):
        convert(source, Config)


@pytest.mark.parametrize("kind", [READERS, WRITERS], ids=["readers", "writers"])
def test_settings_of_plugins_are_the_same_when_they_have_been_written_and_read(kind: Kind[Any]) -> None:
    """Or else what was made with them looks as if it had been made with others."""
    found = reference.built_in(kind)
    assert found
    for name, class_ in found.items():
        if any(field.required for field in msgspec.structs.fields(class_)):
            continue
        with suppress(MissingExtra):
            settings = config.plain(class_())
            assert json.loads(json.dumps(settings)) == settings, name


def test_settings_are_read_without_compression_and_outputs() -> None:
    """Whoever changes how files are compressed or written need not think of configurations."""
    apart = [f"toolkit.storage.{name}" for name in ("reading", "outputs", "compression", "models")]
    path = ROOT / "toolkit" / "config"
    found = [name for each in path.glob("*.py") for name in apart if name in each.read_text(encoding="utf-8")]
    assert found == []


# Secrets of configurations that are shown: found by their keys, however YAML writes them.


@pytest.mark.parametrize(
    "text",
    [
        "password: hidden",
        "storage: {secret_key: hidden, region: eu}",
        "all:\n  - token: hidden\n  - region: eu",
        '{"api-key": "hid\\"den hidden"}',
        "hf_token: |\n  hidden\n  hidden\nnext: 1\n",
        "at: &x hidden\ntoken: *x",
        "credentials: {user: hidden, key: [hidden]}",
        "# token: hidden\na: 1",
        "a: 1  # once password=hidden",
    ],
)
def test_hides_values(text: str) -> None:
    found = conceal(text)
    assert "hidden" not in found
    assert "…" in found


def test_keeps_what_is_no_secret() -> None:
    text = "tag:\n  tokens-0: {tagger: tokens}  # counted\n  secrets-0: secrets\nbudget: {tokens: 2 G}\nmax_tokens: 5\n"
    assert conceal(text) == text


def test_hides_values_of_overrides() -> None:
    assert conceal_override("storage.secret_key=hidden") == "storage.secret_key=…"
    assert conceal_override("storage={token: hidden, b: 1}") == "storage={token: …, b: 1}"
    assert conceal_override("mix.budget.tokens=2 G") == "mix.budget.tokens=2 G"
