"""Statements of a page and its site about AI: ``noai``, and drafts, which are kept as they stand.

Source: ``noai`` and ``noimageai`` (DeviantArt, 2022) in ``<meta name="robots">`` and ``X-Robots-Tag``; drafts:
``ai.txt`` (Spawning), ``Content-Signal`` (Cloudflare, contentsignals.org) and ``Content-Usage`` (IETF, aipref).
"""

import re

import msgspec

from taggers._rights import Agents, Answer, Statement, check_agents, lines_of, site_file, site_of, stated
from toolkit import Document, Example, Files, Tagger
from toolkit.text import url_of

_SIGNALS = ("content-signal", "content-usage")
_NOAI = re.compile(r"(?<![\w-])noai(?![\w-])", re.IGNORECASE)
_FOR = re.compile(r"\s*([A-Za-z0-9_-]+)\s*:\s*(.*)", re.DOTALL)
_MOST = 100


class AiDirective(msgspec.Struct, frozen=True):
    """A directive.

    Attributes:
        name: Name of the field, meta element or file.
        answer: `disallowed` for `noai`; null for what is only a draft, or says nothing of text.
        agent: Crawler that it is for; null for all.
        statement: The line, where it stands, by whom and as of when.
    """

    name: str
    answer: Answer | None
    agent: str | None
    statement: Statement


class Directives(msgspec.Struct, frozen=True):
    """A statement about AI.

    Attributes:
        agents: The answer for each crawler: `disallowed` by `noai`, else `unknown`.
        directives: All that is said, in order: file, header, meta.
        looked_in: Places of the search: `robots.txt`, `ai.txt`, `header`, `meta`; a place that is not listed was not
            captured.
    """

    agents: dict[str, Answer]
    directives: list[AiDirective]
    looked_in: list[str]


class AiDirectives(Tagger):
    """Statements of the page and its site about AI, unchanged.

    - ``noai`` in a robots meta element or in ``X-Robots-Tag`` is an answer, for the crawler that is named before it or
      in the name of the element, or for all. ``noimageai`` says nothing of text.
    - ``ai.txt``, ``Content-Signal`` and ``Content-Usage`` are drafts: their lines are listed without an answer, at most
      100 of a file.
    - Header and meta elements are known of documents of `format: warc` alone; the files need `captures`. No directive
      does not mean that something is allowed: the answer is ``unknown``.

    Attributes:
        captures: a WARC file, or a folder of them, with files of the sites
    """

    EXAMPLES = (
        Example("", {"agents": {"*": "unknown"}, "directives": [], "looked_in": []}),
        Example("a page", {"agents": {"*": "unknown"}, "directives": [], "looked_in": []}),
        Example(
            "größer",
            {
                "agents": {"GPTBot": "disallowed", "CCBot": "unknown"}, "looked_in": ["header", "meta"],
                "directives": [{
                    "name": "x-robots-tag", "answer": "disallowed", "agent": "gptbot",
                    "statement": {"line": "gptbot: noai", "form": "header", "by": "https://a.example/", "as_of": None,
                                  "number": None},
                }],
            },
            options={"agents": ["GPTBot", "CCBot"]},
            metadata={
                "url": "https://a.example/", "http": {"headers": {"x-robots-tag": ["gptbot: noai"]}, "meta": {}},
            },
        ),
    )  # fmt: skip

    captures: Files | None = None
    agents: Agents = ("*",)

    def check(self) -> None:
        check_agents(self.agents)

    def tag(self, document: Document) -> Directives:
        ai_directives, looked_in = self._in_files(document)
        statements, forms = stated(document)
        for name, statement in statements:
            if name in _SIGNALS:
                ai_directives.append(AiDirective(name, None, None, statement))
            elif "noai" in statement.line.lower() or "noimageai" in statement.line.lower():
                match = _FOR.fullmatch(statement.line) if name == "x-robots-tag" else None
                agent = match[1].lower() if match else None if name in ("robots", "x-robots-tag") else name
                answer: Answer | None = "disallowed" if _NOAI.search(statement.line) else None
                ai_directives.append(AiDirective(name, answer, agent, statement))
        refused = {ai_directive.agent for ai_directive in ai_directives if ai_directive.answer}
        answers: dict[str, Answer] = {
            agent: "disallowed" if {None, agent.lower()} & refused else "unknown" for agent in self.agents
        }
        return Directives(answers, ai_directives, looked_in + forms)

    def _in_files(self, document: Document) -> tuple[list[AiDirective], list[str]]:
        """Return the directives in files of the site, and the captured files."""
        site = site_of(url_of({"metadata": document.metadata}))
        ai_directives, forms = list[AiDirective](), list[str]()
        for path in ("/robots.txt", "/ai.txt", "/.well-known/ai.txt") if site else ():
            assert site is not None
            file = site_file(self.captures, site.origin, path)
            if file is None:
                continue
            form = path.rpartition("/")[2]
            forms += [form] if form not in forms else []
            lines = lines_of(file.body) if file.status == 200 else ()
            for number, key, _, line in [line for line in lines if form == "ai.txt" or line[1] in _SIGNALS][:_MOST]:
                statement = Statement(line, form, site.origin, file.date or None, number)
                ai_directives.append(AiDirective(form if form == "ai.txt" else key, None, None, statement))
        return ai_directives, forms
