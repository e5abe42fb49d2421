"""List the named models: licence, size, labels and place."""

from typing import ClassVar

from msgspec import structs

from toolkit.command_options import CommandResult, Options as Common
from toolkit.stages.context import Context, Outcome, table
from toolkit.storage import models

UNKNOWN = "not known"


class NamedModel(models.KnownModel, frozen=True, kw_only=True):
    """A named model and the path of its file.

    The path is None if it is not here.
    """

    path: str | None


class NamedModels(CommandResult, kw_only=True):
    """The named models."""

    models: dict[str, NamedModel]


class Options(Common, frozen=True, kw_only=True):
    """Options of ``toolkit models``."""

    EXAMPLES: ClassVar = ("toolkit models", "toolkit models --json")


def run(context: Context, options: Options) -> Outcome:
    """List the known models; nothing is fetched."""
    listed = {name: (model, models.where(name)) for name, model in models.KNOWN.items()}
    rows = [["name", "licence", "size", "labels", "form of the labels", "sha256", "here"]]
    for name, (model, path) in listed.items():
        facts = [model.license or UNKNOWN, model.size or UNKNOWN, str(model.labels or "-"), model.form or "-"]
        rows.append([name, *facts, model.sha256[:16] or UNKNOWN, "yes" if path else "no"])
    pages = "\n".join(f"{name}: {model.url or model.page}" for name, (model, _) in listed.items())
    text = f"{table(rows, right=[3])}\n\nfetched when first used, and kept in {models.cache_folder()}:\n{pages}"
    data = {name: NamedModel(**structs.asdict(model), path=path or None) for name, (model, path) in listed.items()}
    return Outcome(text=text, data=NamedModels(models=data))
