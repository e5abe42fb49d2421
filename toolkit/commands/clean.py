"""``toolkit clean``: what killed runs have left behind."""

from toolkit.commands.steps import mix_section
from toolkit.commands.steps.context import Context, Outcome
from toolkit.errors import ConfigError
from toolkit.storage import store_of
from toolkit.storage.paths import is_folder, no_folder


def run(context: Context) -> Outcome:
    """Deletes temporary files of processes that are gone, and aborts uploads to S3 that were never completed.

    Those of other machines are deleted, too: the nodes of a cluster that died do not come back to do it.
    """
    found = {left: root for root in _roots(context) for left in store_of(root).leftovers(root, others=True)}
    if not context.options.dry_run:
        for left, root in found.items():
            store_of(root).discard(left)
    what = "would be deleted" if context.options.dry_run else "deleted"
    return Outcome(
        text="\n".join([*found, f"{len(found)} files and uploads {what}"]),
        data={"leftovers": list(found), "deleted": not context.options.dry_run},
    )


def _roots(context: Context) -> list[str]:
    """The folders that are given, or all that the configuration writes in."""
    if context.options.targets:
        return list(dict.fromkeys(map(_checked, context.options.targets)))
    roots = []
    if context.has_dataset:
        dataset = context.dataset
        roots += [dataset.documents, dataset.attributes, dataset.bookkeeping]
    if context.has("mix"):
        mix = mix_section.read(context)
        roots += [mix.output.path, *([mix.rejected] if mix.rejected else [])]
    if not roots:
        raise ConfigError(f"{context.options.config}: expected folders that are written in, got none")
    return list(dict.fromkeys(roots))


def _checked(target: str) -> str:
    """A folder, which on S3 may have nothing below it but uploads."""
    root = target.rstrip("/")
    store = store_of(target)
    if not store.can_write or root.endswith(":") or (store.is_local and not is_folder(root)):
        expected = "expected a folder on disk, or s3://BUCKET and a prefix; check its name"
        raise ConfigError(f"{target}: {expected}{no_folder(root)}")
    return root
