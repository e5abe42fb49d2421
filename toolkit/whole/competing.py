"""The options of kinds that compare documents with each other: which of equal ones stays, and what is compared."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct, Description
from toolkit.errors import ConfigError
from toolkit.whole.kind import Asked, Kind


class Best(ConfigStruct):
    """An expression: of equal ones that with the greatest, or the least, value stays."""

    max: str | None = None
    min: str | None = None


class Competing(Kind, kw_only=True):
    """A kind of which documents compete: of duplicates one stays."""

    AGAINST: ClassVar[bool] = True

    keep: Annotated[
        Literal["first"] | Best,
        Description(
            description="which of several duplicates stays: the first by shard and row, or {max | min: EXPRESSION}"
        ),
    ] = "first"
    scope: Annotated[
        str,
        Description(description="all; source; or SET.KEY.field: only documents with the same value are compared"),
    ] = "all"

    def check(self) -> None:
        """Raise ConfigError for options that do not go together."""
        if isinstance(self.keep, Best) and (self.keep.max is None) == (self.keep.min is None):
            raise ConfigError("keep: expected `first`, {max: EXPRESSION} or {min: EXPRESSION}")

    def asked(self) -> dict[str, Asked]:
        """Return the expressions of the options."""
        found: dict[str, Asked] = {}
        if isinstance(self.keep, Best):
            found["keep"] = Asked(self.keep.max or self.keep.min or "", "number")
        if self.scope != "all":
            found["scope"] = Asked("document.source" if self.scope == "source" else self.scope, "value")
        return found

    @property
    def descending(self) -> bool:
        """Return whether the greatest value stays."""
        return isinstance(self.keep, Best) and self.keep.max is not None


def seed_of(scope: Any) -> int:
    """Return the seed of the hashes of documents that have this value of the scope."""
    return xxhash.xxh3_64_intdigest(msgspec.json.encode(scope, order="sorted"))
