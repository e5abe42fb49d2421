"""``{drop: blocklist, files: takedowns.txt}`` drops the documents that the files list by id, host or URL."""

import os
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from toolkit.config.settings import ConfigNode
from toolkit.data.document_fields import path_of
from toolkit.errors import ConfigError
from toolkit.rules import blocklist, expressions, rule
from toolkit.storage.paths import expand
from toolkit.storage.reading import content_digest


class BlocklistForm(rule.Form):
    """``{drop: blocklist, files: takedowns.txt}`` drops the documents that the files list by id, host or URL.

    Attributes:
        drop: the word `blocklist`
        files: the path or glob of the lists, or several
        entries: the kind of all lines; `any`: each line shows its kind by its form
        url: the field that has the URL of a document: `metadata.url`, `document.url`
    """

    drop: str
    files: str | Annotated[list[str], msgspec.Meta(min_length=1)]
    entries: blocklist.Entries = "any"
    url: str = ""

    KEY = "drop"
    WORD = "blocklist"

    def rules(self, place: ConfigNode, base: str) -> Sequence[rule.Rule]:
        patterns = [self.files] if isinstance(self.files, str) else self.files
        if self.url and path_of(self.url) is None:
            raise place.error(("url",), f"expected a field (`metadata.url`, `document.url`), got {self.url!r}")
        results = [path for pattern in patterns for path in _expanded(pattern, base, place)]
        return [
            Blocklist(
                name=self.name or self.WORD,
                files={path: content_digest(path) for path in dict.fromkeys(results)},
                entries=self.entries,
                url=self.url,
                when=self.when,
            )
        ]


def _expanded(pattern: str, base: str, place: ConfigNode) -> list[str]:
    """Return the files of a pattern, beside the configuration. Otherwise they lie below the working directory."""
    near = os.path.join(base, pattern)
    try:
        return [path for path, _ in expand(near)]
    except ConfigError as error:
        try:
            if (other := os.path.join(place.root, pattern)) != near:
                return [path for path, _ in expand(other)]
        except ConfigError:
            pass
        raise place.error(("files",), str(error)) from None


class Blocklist(rule.Rule):
    """The rule.

    Attributes:
        files: Digests of the content of files, by path.
        entries: Kind of their lines.
        url: Dotted path of the URL of documents; empty for the usual one.
        cleared: True for the lists of a takedown: documents that ingest has cleared are dropped, too, and entries that
            match none are no news.
    """

    files: dict[str, str]
    entries: blocklist.Entries = "any"
    url: str = ""
    cleared: bool = False

    FORM = BlocklistForm
    ROLE = rule.Role.DROPS

    def recorded(self) -> dict[str, Any]:
        return super().recorded() | {"files": list(self.files.values())}

    def compile(self, compiler: rule.Compiler) -> rule.CompiledRule:
        watch = blocklist.Watch(self.files, self.entries, self.url, cleared=self.cleared)
        names = compiler.names_for(self)
        if self.url and (fault := expressions.absent(self.url.split("."), compiler.names)):
            raise rule.refused(self, f"url: {fault}")
        compiler.needs.source = True
        compiler.needs.documents |= watch.list.needs_url
        plain = compiler.decision_by_code(self, names, compiler.called(watch))
        return Listed(self, names, plain.function, plain.condition, watch)


class Listed(rule.CompiledRule, frozen=True):
    """Drops listed documents."""

    watch: blocklist.Watch

    def watches(self) -> blocklist.Watch | None:
        return None if self.watch.cleared else self.watch

    def watched(self, values: rule.Values) -> dict[str, Any]:
        return super().watched(values) | {"entries": self.watch.entries_of(values[-1])}
