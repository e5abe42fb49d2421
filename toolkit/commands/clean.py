"""Delete what killed runs have left behind; run it when nothing is working there."""

from typing import Annotated, ClassVar

from toolkit.commands.command_line.options import Flag, Looking, Words
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.errors import ConfigError
from toolkit.storage import store_of
from toolkit.storage.paths import is_folder, no_folder


class Options(Looking, frozen=True, kw_only=True):
    """Options of ``toolkit clean``."""

    EXAMPLES: ClassVar = ("toolkit clean data/quickstart",)

    targets: Annotated[tuple[str, ...], Words("folders, or settings with -c")] = ()
    dry_run: Annotated[bool, Flag("only list them")] = False


def run(context: Context, options: Options) -> Outcome:
    """Delete temporary files of processes that are gone, and abort uploads to S3 that were never completed.

    Those of other machines are deleted, too: the nodes of a cluster that died do not come back to do it.
    """
    found = {left: root for root in _roots(context) for left in store_of(root).leftovers(root, others=True)}
    if not options.dry_run:
        for left, root in found.items():
            store_of(root).discard(left)
    what = "would be deleted" if options.dry_run else "deleted"
    return Outcome(
        text="\n".join([*found, f"{len(found)} files and uploads {what}"]),
        data={"leftovers": list(found), "deleted": not options.dry_run},
    )


def _roots(context: Context) -> list[str]:
    """Return the folders that are given, or all that the configuration writes in."""
    if context.options.targets:
        return list(dict.fromkeys(map(_checked, context.options.targets)))
    roots = []
    if context.has_dataset:
        dataset = context.dataset
        roots += [dataset.documents, dataset.attributes, dataset.bookkeeping]
    if context.has("mix"):
        mix = context.mix
        roots += [mix.output.path, *([mix.rejected] if mix.rejected else [])]
    if not roots:
        raise ConfigError(f"{context.options.config}: expected folders that are written in, got none")
    return list(dict.fromkeys(roots))


def _checked(target: str) -> str:
    """Return a folder, which on S3 may have nothing below it but uploads."""
    root = target.rstrip("/")
    store = store_of(target)
    if not store.can_write or root.endswith(":") or (store.is_local and not is_folder(root)):
        expected = "expected a folder on disk, or s3://BUCKET and a prefix; check its name"
        raise ConfigError(f"{target}: {expected}{no_folder(root)}")
    return root
