"""The answer of robots.txt about a page's address, by crawler.

Source: RFC 9309, "Robots Exclusion Protocol".
"""

from collections.abc import Sequence

import msgspec

from taggers._rights import Agents, Answer, check_agents, rule_for, site_file, site_of
from toolkit import Document, Example, Files, Tagger
from toolkit.text import url_of


class RobotsAnswer(msgspec.Struct, frozen=True):
    """The answer for one crawler.

    Attributes:
        answer: `allowed`, `disallowed` or `unknown`.
        line: Line that decided; null if none did.
        number: Number of this line, from 1.
    """

    answer: Answer
    line: str | None = None
    number: int | None = None


class RobotsOfPage(msgspec.Struct, frozen=True):
    """The answer of robots.txt.

    Attributes:
        agents: The answer for each crawler.
        form: `robots.txt`.
        by: Site whose file it is; null if the document has no URL.
        as_of: When the file was captured; null if it was not.
        status: HTTP status of the file, after redirects; null if it was not captured.
    """

    agents: dict[str, RobotsAnswer]
    form: str
    by: str | None
    as_of: str | None
    status: int | None


class Robots(Tagger):
    """The answer of robots.txt about the page, for each crawler (RFC 9309): allowed, disallowed or unknown.

    - ``answer``: by the longest ``allow`` or ``disallow`` that matches, in the group of the crawler, or else in that of
      ``*``; ``allowed`` if none does. A file that the server does not have (status 4xx) allows everything, one that it
      cannot give (5xx) disallows everything.
    - It is ``unknown`` if the document has no URL or the file was not captured. `captures` may hold several captures:
      the last one counts, whenever the page was fetched. Redirects are followed within the captures, five at most.
    - Names of crawlers are compared without case, also with digits, which RFC 9309 does not have in them.

    Attributes:
        captures: a WARC file, or a folder of them, with robots.txt of the sites
    """

    EXAMPLES = (
        Example(
            "", {"agents": {"*": {"answer": "unknown", "line": None, "number": None}}, "form": "robots.txt", "by": None,
                 "as_of": None, "status": None},
        ),
        Example(
            "a page",
            {"agents": {"*": {"answer": "allowed", "line": None, "number": None}}, "form": "robots.txt",
             "by": "https://none.example", "as_of": "2026-01-02T00:00:00Z", "status": 404},
            options={"captures": "tests/taggers/files/robots.warc"},
            metadata={"url": "https://none.example/"},
        ),
        Example(
            "größer",
            {"agents": {
                "GPTBot": {"answer": "disallowed", "line": "Disallow: /", "number": 2},
                "other": {"answer": "allowed", "line": "Allow: /p/*.html$", "number": 6},
             },
             "form": "robots.txt", "by": "https://a.example", "as_of": "2026-01-02T00:00:00Z", "status": 200},
            options={"captures": "tests/taggers/files/robots.warc", "agents": ["GPTBot", "other"]},
            metadata={"url": "https://a.example/p/größer.html"},
        ),
    )  # fmt: skip

    captures: Files | None = None
    agents: Agents = ("*",)

    def check(self) -> None:
        check_agents(self.agents)

    def tag_batch(self, documents: Sequence[Document]) -> list[RobotsOfPage]:
        return [self._of(url_of({"metadata": document.metadata})) for document in documents]

    def _of(self, url: str | None) -> RobotsOfPage:
        site = site_of(url)
        file = site_file(self.captures, site.origin, "/robots.txt") if site else None
        if site is None or file is None:
            unknown = dict.fromkeys(self.agents, RobotsAnswer("unknown"))
            return RobotsOfPage(unknown, "robots.txt", site and site.origin, None, None)
        answers = {agent: _answer(file.status, file.body, agent, site.path) for agent in self.agents}
        return RobotsOfPage(answers, "robots.txt", site.origin, file.date or None, file.status)


def _answer(status: int, body: bytes, agent: str, path: str) -> RobotsAnswer:
    if status // 100 != 2:
        return RobotsAnswer({4: "allowed", 5: "disallowed"}.get(status // 100, "unknown"))  # type: ignore[arg-type]  # of Answer
    rule = rule_for(body, agent, path)
    if rule is None:
        return RobotsAnswer("allowed")
    return RobotsAnswer("allowed" if rule.allows else "disallowed", rule.line, rule.number)
