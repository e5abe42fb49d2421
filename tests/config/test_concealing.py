"""Secrets of configurations that are shown: found by their keys, however YAML writes them."""

import pytest

from toolkit.config.concealing import concealed, concealed_override


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
    found = concealed(text)
    assert "hidden" not in found
    assert "…" in found


def test_keeps_what_is_no_secret() -> None:
    text = "tag:\n  tokens-0: {tagger: tokens}  # counted\n  secrets-0: secrets\nbudget: {tokens: 2 G}\nmax_tokens: 5\n"
    assert concealed(text) == text


def test_hides_values_of_overrides() -> None:
    assert concealed_override("storage.secret_key=hidden") == "storage.secret_key=…"
    assert concealed_override("storage={token: hidden, b: 1}") == "storage={token: …, b: 1}"
    assert concealed_override("mix.budget.tokens=2 G") == "mix.budget.tokens=2 G"
