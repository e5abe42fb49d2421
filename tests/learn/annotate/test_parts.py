"""Prompts, windows, what an answer says, answers on disk, and limits: each by itself."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.conftest import ROOT
from toolkit.config import settings
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError
from toolkit.learn.annotate import annotate_config, answers as stored
from toolkit.learn.annotate.answers import Answer, AnswerCache
from toolkit.learn.annotate.ledger import RateLimiter
from toolkit.learn.annotate.outcomes import reply_of
from toolkit.learn.annotate.prompt import (
    EXCERPT,
    LabelForm,
    Prompt,
    ScoreForm,
    Windows,
    aggregate,
    excerpt,
    load,
    most_frequent,
    read,
    template,
)

OURS = sorted((ROOT / "configs/prompts").glob("*.yaml"))
ANSWERS = {"educational_value": "3", "register": "how-to"}


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_prompts_are_prompts_whose_own_example_is_read(path: Path) -> None:
    """The line with which an answer is to end, filled in, is an answer; the one before it does not count."""
    prompt = load(settings.load(str(path)))
    name, _, language = path.stem.partition(".")
    assert (prompt.prompt_name, prompt.language) == (name, language)
    last = prompt.prompt.strip().splitlines()[-1]
    line = last.partition("<")[0] + ANSWERS[name]
    said = read(f"{line[:-1]}zzz\nA reason.\n**{line}**", prompt)
    assert (said.error, said.label or f"{said.score:g}") == ("", ANSWERS[name])
    assert "</text>" in prompt.messages({"text": "a < b & c", "id": "", "source": "", "metadata": {}})[0]["content"]
    assert {len(load(settings.load(str(each))).form.labels) for each in OURS if "register" in each.name} == {12}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Judge {placeholder}.", "Judge {{t}}."),
        ("As {{{{json}}}}: {text}", None),
        ("As {{ '{' }}json}: {{ text }}", "As {json}: {{t}}"),
        ("{% for line in text.split('t') %}[{{ line }}]{% endfor %}", "[{{][}}]"),
        ("{{ metadata.url }} {{ text }}", "u {{t}}"),
        ("{a} and {b}", None),
        ("{text.__class__}", None),
        ("{0}", None),
        ("{{ text.__class__.__mro__ }}", None),
        ("{{ nothing }}", None),
    ],
)
def test_templates(text: str, filled: str | None) -> None:
    """Braces of the document stay as they are; what is no plain template is refused."""
    values: dict[str, Any] = {"text": "{{t}}", "metadata": {"url": "u"}, "id": "i", "source": "s"}
    if filled is None:
        with pytest.raises(ConfigError, match=r"^prompt: "):
            template(text)(values)
    else:
        assert template(text)(values) == filled


@pytest.mark.parametrize(
    ("text", "score", "error"),
    [
        ("Score: 2. No, score: 4.5", 4.5, ""),
        ("**Educational score:** 3", 3.0, ""),
        ("the score is high", None, "expected a score as"),
        ("Score: 7", None, "expected a score of at least 0 and at most 5, got 7"),
        ("Score: -1", None, "expected a score of at least 0"),
    ],
)
def test_scores_behind_the_last_score(text: str, score: float | None, error: str) -> None:
    bounds = ScoreForm(regex=Prompt(prompt_name="x", prompt="").form.regex, min=0, max=5)
    said = read(text, Prompt(prompt_name="x", prompt="", score=bounds))
    assert said.score == score
    assert said.error.startswith(error)
    assert bool(said.error) == bool(error)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": {"b": 2}}', 2.0),
        ('```json\n{"a": {"b": "3"}}\n```', 3.0),
        ('{"a": {"b": true}}', None),
        ('{"a": {"b": NaN}}', None),
        ('{"a": 1}', None),
        ("[1]", None),
        ("{" * 100_000, None),
        ("", None),
    ],
)
def test_scores_in_json(text: str, found: float | None) -> None:
    said = read(text, Prompt(prompt_name="x", prompt="", score=ScoreForm(field="a.b")))
    assert (said.score, bool(said.error)) == (found, found is None)


def test_labels_and_what_samples_come_to() -> None:
    form = LabelForm(labels=["News", "how-to"], regex=r"Type: ([\w-]+)")
    prompt = Prompt(prompt_name="x", prompt="", label=form)
    assert read("type: x Type: NEWS", prompt).label == "News"
    assert read("Type: poem", prompt).error == 'expected one of News, how-to, got "poem"'
    assert [aggregate([1, 2, 2, 4], how) for how in ("mean", "median", "min", "max", "majority")] == [2.25, 2, 1, 4, 2]
    assert aggregate([1, 2], "majority") == 1.5
    assert aggregate([], "mean") is None
    assert most_frequent(["b", "a", "a", "b", "c"]) == "b"
    assert most_frequent([]) is None
    assert excerpt("x" * EXCERPT) == "x" * EXCERPT
    assert len(excerpt("x" * 10_000)) < EXCERPT + 9


@given(st.text(max_size=60), st.integers(1, 20))
def test_windows_of_characters_are_in_the_text(text: str, size: int) -> None:
    found = Windows(characters=size, pieces=["begin", "middle", "end"]).of(text, None)
    assert all(0 <= start <= end <= len(text) and end - start <= size for start, end in found)
    assert found == ([(0, len(text))] if len(text) <= size else found)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A tokenizer of bytes, for which a letter is up to four tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=256, initial_alphabet=letters, show_progress=False)
    made.train_from_iterator([], trainer)
    return made


def test_windows_of_tokens_end_between_letters(tokenizer: Any) -> None:
    """Offsets are code points; a letter whose tokens do not all fit is left out."""
    text = "ab łódź 😀 end"
    lead = Windows(tokens=5)
    assert [text[start:end] for start, end in lead.of(text, tokenizer)] == ["ab ł"]
    assert [text[start:end] for start, end in Windows(tokens=4).of(text, tokenizer)] == ["ab "]
    assert lead.of("ab", tokenizer) == [(0, 2)]
    long = text * 1000
    begin, end = Windows(tokens=50, pieces=["begin", "end"]).of(long, tokenizer)
    assert begin[0] == 0
    assert end[1] == len(long)
    for first, behind in (begin, end):
        assert 44 <= len(tokenizer.encode(long[first:behind]).ids) <= 53


def test_answers_are_found_again_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_FRESH", 7)
    keys = [f"{i % 5:016x}{i:016x}" for i in range(40)]  # half of a digest is no digest
    with AnswerCache(str(tmp_path / "a")) as answers:
        for i, key in enumerate(keys):
            answers.add(Answer(key=key, at=i, text="é" * i * 1000))
        answers.add(Answer(key=keys[3], at=99, text="later"))
        assert answers.get("f" * 32) is None
        assert [found.text for key in keys[20:] if (found := answers.get(key))] == [
            "é" * i * 1000 for i in range(20, 40)
        ]
    with AnswerCache(str(tmp_path / "a")) as again:
        last = again.get(keys[3])
        assert last is not None
        assert last.text == "later"
        assert all(again.get(key) for key in keys)


def test_answers_are_on_a_disk() -> None:
    """A bucket has no files that grow; a folder must be named for a dataset in one."""
    dataset = Dataset("s3://bucket/documents", "s3://bucket/attributes")
    entry = {"endpoint": "http://127.0.0.1:1/v1", "model": "m", "prompt": {"prompt_name": "p", "prompt": "{{ text }}"}}
    with pytest.raises(
        ConfigError, match=r"edu-0\.answers: expected a folder on a disk for the answers, got s3://bucket"
    ):
        annotate_config.annotator_of(settings.ConfigNode({"edu-0": entry}).at("edu-0"), dataset)
    named, _ = annotate_config.annotator_of(settings.ConfigNode({"e": {**entry, "answers": "here"}}).at("e"), dataset)
    assert named.answers == "here"


def test_requests_are_spread_over_a_minute() -> None:
    now = [0.0]
    limits = RateLimiter(60, 600, clock=lambda: now[0])

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return False

    limits.stopped.wait = wait  # type: ignore[assignment,method-assign]
    begun = []
    for _ in range(5):
        assert limits.turn(1)
        begun.append(now[0])
        limits.add_answer(20)
    assert begun == pytest.approx([0, 3, 6, 9, 12])  # a second for the request, two for the answer


@pytest.mark.parametrize(
    ("escaped", "text"),
    [(rb"\ud83d", "\N{REPLACEMENT CHARACTER}"), (rb"\ud83d\ude00", "\N{GRINNING FACE}"), (rb"\\ud83d", r"\ud83d")],
)
def test_an_answer_that_ends_within_an_emoji_is_an_answer(escaped: bytes, text: str) -> None:
    """It would be paid for again with each retry."""
    reply = reply_of(200, {}, b'{"choices": [{"message": {"content": "score: 3 %s"}}]}' % escaped)
    assert [choice.text for choice in reply.choices] == [f"score: 3 {text}"]
