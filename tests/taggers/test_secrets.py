"""Secrets: where they stand, in long lines too, and how long it takes."""

import sys
import time

import pytest

from taggers import secrets
from taggers.secrets import Secrets
from toolkit import ConfigError, Document, MissingExtra


@pytest.fixture
def _extra() -> None:
    pytest.importorskip("detect_secrets", reason="extra `secrets`")


def found(text: str) -> list[tuple[str, str]]:
    value = Secrets().tag(Document(text))
    return [(type_, text[a:b]) for (a, b, _), type_ in zip(value.spans, value.types, strict=True)]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets._detectors.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "detect_secrets"] or ["detect_secrets"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"detect-secrets .*: pip install 'tagmix\[secrets\]'"):
        Secrets().tag(Document("a"))


@pytest.mark.usefixtures("_extra")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AKIAIOSFODNN7EXAMPLE", ("AWS Access Key", "AKIAIOSFODNN7EXAMPLE")),
        ("x ghp_" + "a1B2" * 9 + " y", ("GitHub Token", "ghp_" + "a1B2" * 9)),
        ("https://joe:sesame-1@example.org", ("Basic Auth Credentials", "sesame-1")),
        ("password = 'open sesame'", ("Secret Keyword", "open sesame")),
        ("-----BEGIN RSA PRIVATE KEY-----", ("Private Key", "BEGIN RSA PRIVATE KEY")),
        ("'0f3a9c81b7d2e64f5a0c1b9d8e7f6a32'", ("Hex High Entropy String", "0f3a9c81b7d2e64f5a0c1b9d8e7f6a32")),
    ],
)
@pytest.mark.parametrize("before", ["", "größe\r\n\n", "x " * 400, "x " * 5000])
def test_a_secret_wherever_it_stands(before: str, text: str, expected: tuple[str, str]) -> None:
    assert expected in found(before + text + "\nend")


@pytest.mark.usefixtures("_extra")
def test_prose_has_none() -> None:
    assert found("The secret of the password is that nobody knows it. 127.0.0.1, a@b.de, key: see below") == []


@pytest.mark.usefixtures("_extra")
@pytest.mark.parametrize(
    "piece", ["a", " ", "/", "password", "eyJ", "'a", "://a:", "key=", "-----BEGIN ", "0123456789abcdef"]
)
def test_time_is_linear(piece: str) -> None:
    text = piece * (40_000 // len(piece))
    began = time.process_time()
    Secrets().tag(Document(text))
    assert time.process_time() - began < 20


@pytest.mark.usefixtures("_extra")
def test_unknown_types_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected types of AWS Access Key, .*, got 'IP'"):
        Secrets(leave_out=("IP",)).tag(Document("a"))
