"""Rights in text and data mining reserved by the TDM Reservation Protocol.

Source: TDMRep, final report of the W3C community group, 10 May 2024: ``/.well-known/tdmrep.json`` (section 5.2), HTTP
header (5.3), HTML meta (5.4). Each supersedes those before; what is absent changes nothing (section 6). Patterns of
`location` are those of robots.txt, and the first one that matches counts.
"""

import msgspec

from taggers._rights import Answer, Statement, matches, site_file, site_of, spellings, stated
from toolkit import Document, Example, Files, Tagger
from toolkit.text import url_of

_VALUES = {"0": "allowed", "1": "disallowed"}
_FIELD, _POLICY, _FILE = "tdm-reservation", "tdm-policy", "tdmrep.json"


class Reservation(msgspec.Struct, frozen=True):
    """A statement about text and data mining.

    Attributes:
        answer: `disallowed` if rights are reserved (1), `allowed` if they are not (0), `unknown` if nothing is said.
        policy: Address of the policy that counts; null if none is given.
        statements: All that is said, in the order in which later ones supersede earlier ones.
        looked_in: Places of the search: `tdmrep.json`, `header`, `meta`; a place that is not listed was not captured.
    """

    answer: Answer
    policy: str | None
    statements: list[Statement]
    looked_in: list[str]


class TdmReservation(Tagger):
    """Reservation of rights in text and data mining: by site or page (TDMRep).

    The header and the meta element are known of documents of `format: warc` alone. Values other than 0 and 1 count as
    none, as the protocol has it. Nobody is asked for the policy.

    Attributes:
        captures: a WARC file, or a folder of them, with `tdmrep.json` of the sites
    """

    EXAMPLES = (
        Example("", {"answer": "unknown", "policy": None, "statements": [], "looked_in": []}),
        Example("a page", {"answer": "unknown", "policy": None, "statements": [], "looked_in": []}),
        Example(
            "größer",
            {"answer": "disallowed", "policy": None, "looked_in": ["tdmrep.json", "header", "meta"], "statements": [
                {"line": '{"location":"/p/","tdm-reservation":0}', "form": "tdmrep.json", "by": "https://a.example",
                 "as_of": "2026-01-02T00:00:00Z", "number": None},
                {"line": "tdm-reservation: 1", "form": "header", "by": "https://a.example/p/a.html", "as_of": None,
                 "number": None},
            ]},
            options={"captures": "tests/taggers/files/robots.warc"},
            metadata={
                "url": "https://a.example/p/a.html", "http": {"headers": {"tdm-reservation": ["1"]}, "meta": {}},
            },
        ),
    )  # fmt: skip

    captures: Files | None = None

    def tag(self, document: Document) -> Reservation:
        answer: Answer = "unknown"
        policy = None
        listed, looked_in = self._in_file(document)
        statements_of_page, of_page = stated(document)
        for name in (_FIELD, _POLICY):  # the last value of each form counts
            listed += [(name, statement.line, statement) for key, statement in statements_of_page if key == name]
        listed.sort(key=lambda item: (_FILE, "header", "meta").index(item[2].form))
        statements: dict[Statement, None] = {}
        for name, value, statement in listed:
            if name == _FIELD:
                answer = _VALUES.get(value.strip(), answer)  # type: ignore[assignment]  # of Answer
            else:
                policy = value.strip() or policy
            line = statement.line if statement.form == _FILE else f"{name}: {statement.line}"
            statements[msgspec.structs.replace(statement, line=line)] = None
        return Reservation(answer, policy, list(statements), looked_in + of_page)

    def _in_file(self, document: Document) -> tuple[list[tuple[str, str, Statement]], list[str]]:
        """Return the file's statements about a page: name, value, and the rule."""
        site = site_of(url_of({"metadata": document.metadata}))
        file = site_file(self.captures, site.origin, f"/.well-known/{_FILE}") if site else None
        if site is None or file is None:
            return [], []
        try:
            rules = msgspec.json.decode(file.body, type=list[dict[str, msgspec.Raw]]) if file.status == 200 else []
        except (msgspec.DecodeError, UnicodeDecodeError):
            rules = []
        path = spellings(site.path, is_uri=True)
        for rule in rules:
            fields = {name: _plain(value) for name, value in rule.items()}
            location = fields.get("location")
            if location is not None and any(map(matches, spellings(location), path)):
                line = msgspec.json.encode(rule).decode()[:1000]
                statement = Statement(line, _FILE, site.origin, file.date or None)
                return [(name, fields[name], statement) for name in (_FIELD, _POLICY) if name in fields], [_FILE]
        return [], [_FILE]


def _plain(value: msgspec.Raw) -> str:
    result = msgspec.json.decode(value)
    return result if isinstance(result, str) else bytes(value).decode()
