"""Write README.md, the dataset card of a dataset or an output, as the Hugging Face Hub shows it."""

from typing import Annotated, Any, ClassVar

from toolkit.commands.command_line.options import Flag
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.description import DescriptionOptions, facts_of, section
from toolkit.commands.steps.outcome import Outcome
from toolkit.errors import ConfigError, DataError
from toolkit.inspect.describe.about import read_about
from toolkit.inspect.describe.card import head, merge, page
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists, join, list_files


class Options(DescriptionOptions, frozen=True, kw_only=True):
    """Options of ``toolkit card``."""

    EXAMPLES: ClassVar = ("toolkit card -c my/corpus.yaml", "toolkit card data/released about.name=released")

    overwrite: Annotated[bool, Flag("replace a README.md that this command did not write")] = False


def run(context: Context, options: Options) -> Outcome:
    """Write ``README.md``, or print it (--dry-run), or say whether it is up to date (--check)."""
    about = read_about(section(context), required=())
    facts = facts_of(context, options, min(about.examples, 1))
    path = join(facts.root, page.NAME)
    old = _old(path)
    if old is not None and not merge.is_ours(old) and not options.overwrite:
        raise ConfigError(f"{path}: expected a card of ours, got another; move it away, or replace it with --overwrite")
    kept = page.read(path, old, about) if old is not None and merge.is_ours(old) else merge.Kept()
    configurations = head.configurations_of(facts, list_files(facts.root))
    text = page.document(facts, about, configurations, kept, path)
    names = [each.name for each in configurations]
    notes = [note for note in head.notes_of(facts, configurations) if note]
    found: dict[str, Any] = {"path": path, "configurations": names, "kept": len(kept.blocks), "notes": notes}
    if options.check:
        fresh = text == old
        told = f"{path}: " + ("up to date" if fresh else "expected what the data are now; run `toolkit card`")
        return Outcome(told, found | {"fresh": fresh}, exit_code=0 if fresh else 1)
    if options.dry_run:
        return Outcome(text.rstrip("\n"), found | {"text": text})
    write_file(path, text.encode())
    told = f"{path}: configurations: {', '.join(names) or 'none'}"
    return Outcome("\n".join([told, *(f"note: {note}" for note in notes)]), found)


def _old(path: str) -> str | None:
    if not exists(path):
        return None
    try:
        return store_of(path).read(path).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"expected UTF-8, got: {error}; move it away", path=path) from None
