"""Tokenize the kept documents, or all, for Modalities, OLMo, Megatron or NumPy."""

from functools import partial
from typing import ClassVar

from toolkit.commands import _sections as sections, mix
from toolkit.commands.mix import Locking
from toolkit.stages.context import Context, Outcome
from toolkit.stages.declaration import Checked, Declaration
from toolkit.stages.disk_quota import DiskUse


class Options(Locking, frozen=True, kw_only=True):
    """Options of ``toolkit tokenize``."""

    EXAMPLES: ClassVar = (
        "toolkit tokenize -c my.yaml",
        "toolkit tokenize -c my.yaml tokenize.files=megatron tokenize.path=data/megatron",
    )


def run(context: Context, options: Options) -> Outcome:
    """Run the mix with the output of the section ``tokenize:``."""
    with sections.with_tokens(context) as tokens:
        return mix.run(tokens, options.as_of(mix.Options))


def _check(context: Context, checked: Checked) -> None:
    mix.check(sections.with_tokens(context), checked)


def _disk_use(context: Context) -> DiskUse:
    path = (context.written or context.config).tokenize.get("path")
    return DiskUse(mixed=mix.TOKENS, needs_documents=True, folders=[path])


STAGE = Declaration(
    "per shard",
    partial(mix.progress, mixes=sections.tokens),
    _check,
    partial(mix.looked, mixes=sections.tokens),
    disk_use=_disk_use,
    on_dataset=False,
)
