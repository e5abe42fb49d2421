"""Options of output formats that have one output, or one for each label."""

from typing import Annotated

import msgspec

By = Annotated[
    str | None,
    msgspec.Meta(
        description="an attribute (`language`) or field (`metadata.language`) with a label: one output for each label"
    ),
]
Name = Annotated[str, msgspec.Meta(description="the name of the single output, if there is no `by`")]
