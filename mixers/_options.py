"""Options of output formats: one output, or one for each label or shard."""

from typing import Annotated

import msgspec

from toolkit import Labelled, Mixed, Wanted, Writer

By = Annotated[
    str | None,
    msgspec.Meta(
        description="an attribute (`language`) or field (`metadata.language`) with a label: one output for each label"
    ),
]
Name = Annotated[str, msgspec.Meta(description="the name of the single output, if there is no `by`")]


class Labelling:
    """The output of a document by the options `by`, `name`, and `layout`. With `inputs`, it is that of its shard."""

    by: str | None
    name: str
    layout: str = ""

    def label(self) -> str | None:
        if self.layout == "inputs":
            return None
        return Writer.label_of(self.by) if self.by else repr(self.name)

    def wants(self) -> dict[str, Wanted]:
        return {"by": Wanted(self.by, Labelled, not_null=("label",))} if self.by else {}

    def label_in(self, mixed: Mixed) -> str:
        """Return the label of a document."""
        if self.layout == "inputs":
            return mixed.shard
        return Writer.check_label(mixed.values["by"].label if self.by else self.name)
