"""Options of output formats that have one output, or one for each label."""

from typing import Annotated

import msgspec

By = Annotated[
    str | None,
    msgspec.Meta(
        description="an attribute (`language`) or field (`metadata.language`) with a label, for an output a label"
    ),
]
Name = Annotated[str, msgspec.Meta(description="of the one output, without `by`")]
