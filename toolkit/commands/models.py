"""List the models that have names: licence, size, labels, where they are."""

from typing import ClassVar

from msgspec import structs

from toolkit.command_line import CommandResult
from toolkit.command_line import Options as Common
from toolkit.stages.context import Context, Outcome, table
from toolkit.storage import models

UNKNOWN = "not known"


class NamedModel(models.KnownModel, frozen=True, kw_only=True):
    """A model that has a name, and the path of its file, None where it is not here."""

    path: str | None


class NamedModels(CommandResult, kw_only=True):
    """The models that have names."""

    models: dict[str, NamedModel]


class Options(Common, frozen=True, kw_only=True):
    """Options of ``toolkit models``."""

    EXAMPLES: ClassVar = ("toolkit models", "toolkit models --json")


def run(context: Context, options: Options) -> Outcome:
    """List the known models; nothing is fetched."""
    listed = {name: (known, models.where(name)) for name, known in models.KNOWN.items()}
    rows = [["name", "licence", "size", "labels", "form of the labels", "sha256", "here"]]
    for name, (known, path) in listed.items():
        said = [known.license or UNKNOWN, known.size or UNKNOWN, str(known.labels or "-"), known.form or "-"]
        rows.append([name, *said, known.sha256[:16] or UNKNOWN, "yes" if path else "no"])
    pages = "\n".join(f"{name}: {known.url or known.page}" for name, (known, _) in listed.items())
    text = f"{table(rows, right=[3])}\n\nfetched when first used, and kept in {models.cache_folder()}:\n{pages}"
    data = {name: NamedModel(**structs.asdict(known), path=path or None) for name, (known, path) in listed.items()}
    return Outcome(text=text, data=NamedModels(models=data))
