"""Provide the section ``about:``: the facts about a dataset that only people know."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from toolkit.config import settings
from toolkit.config.settings import ConfigNode, ConfigStruct
from toolkit.storage.globs import glob_regex
from toolkit.text.languages.labels import WELL_FORMED

Texts = str | list[str]


class Agent(ConfigStruct):
    """A person or an organization.

    Attributes:
        name: the name of the person or organization
        type: Organization or Person; required
        url: the page of the person or organization
        email: the e-mail address
    """

    name: str
    type: Literal["Organization", "Person"] | None = None
    url: str | None = None
    email: str | None = None


class Rai(ConfigStruct):
    """Terms of the Croissant RAI vocabulary 1.0, spelled as there; what records tell is not asked for."""

    dataCollection: Texts | None = None  # noqa: N815  # the vocabulary's spelling
    dataCollectionType: Texts | None = None  # noqa: N815
    dataCollectionMissingData: Texts | None = None  # noqa: N815
    dataCollectionRawData: Texts | None = None  # noqa: N815
    dataCollectionTimeframe: Texts | None = None  # noqa: N815
    dataImputationProtocol: Texts | None = None  # noqa: N815
    dataPreprocessingProtocol: Texts | None = None  # noqa: N815
    dataManipulationProtocol: Texts | None = None  # noqa: N815
    dataAnnotationProtocol: Texts | None = None  # noqa: N815
    dataAnnotationPlatform: Texts | None = None  # noqa: N815
    dataAnnotationAnalysis: Texts | None = None  # noqa: N815
    annotationsPerItem: Texts | None = None  # noqa: N815
    annotatorDemographics: Texts | None = None  # noqa: N815
    machineAnnotationTools: Texts | None = None  # noqa: N815
    dataReleaseMaintenancePlan: Texts | None = None  # noqa: N815
    personalSensitiveInformation: Texts | None = None  # noqa: N815
    dataSocialImpact: Texts | None = None  # noqa: N815
    dataBiases: Texts | None = None  # noqa: N815
    dataLimitations: Texts | None = None  # noqa: N815
    dataUseCases: Texts | None = None  # noqa: N815
    hasSyntheticData: bool | None = None  # noqa: N815

    def terms(self) -> dict[str, Any]:
        """Return the terms with values."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


class About(ConfigStruct):
    """The section ``about:``; what a description needs and it does not give is an error, nothing is made up.

    Attributes:
        name: the name of the dataset
        description: the corpus in some sentences
        license: a URL, preferably of https://spdx.org/licenses/
        url: page of the dataset
        creator: {type: Organization or Person, name, url, email}, or a list of these
        date_published: 2026-01-31
        citation: a citation, preferably BibTeX
        version: MAJOR.MINOR.PATCH
        publisher: the publisher, in the form of `creator`
        keywords: words by which people find it
        same_as: URLs of other pages of the same dataset
        sd_license: URL: licence of the description itself
        date_created: 2026-01-31
        date_modified: 2026-01-31
        in_language: BCP 47 codes; default: those of the labels
        live: true: the data still grow; or globs of the files that grow. Such files are listed without size and
            checksum
        splits: {train: 0.98, test: 0.02}: a hash of the id decides; with `by: file` the mix divides its files by split
        examples: number of records that each record set shows (texts cut at 200 characters, lists at 5 values), and of
            samples on the card; 0: none
        scores: the card has distributions of attributes
        croissant: version (in quotes) of the specification; `--spec` overrides
        rai: terms of the Croissant RAI vocabulary: limits, biases, uses …
        usage: addresses of conditions of use, such as terms of DUO (Croissant 1.1)
        disclosure: answers to fields of `toolkit disclose` that only people know, by id
    """

    name: str | None = None
    description: str | None = None
    license: Texts | None = None
    url: str | None = None
    creator: list[Agent] | Agent | None = None
    date_published: str | None = None
    citation: str | None = None
    version: str | None = None
    publisher: list[Agent] | Agent | None = None
    keywords: list[str] = []
    same_as: Texts | None = None
    sd_license: Texts | None = None
    date_created: str | None = None
    date_modified: str | None = None
    in_language: Texts | None = None
    live: bool | list[str] = False
    splits: dict[str, float | str] = {}
    examples: Annotated[int, msgspec.Meta(ge=0)] = 3
    scores: bool = True
    croissant: Literal["1.0", "1.1"] = "1.0"
    rai: Rai = Rai()

    usage: Texts | None = None
    disclosure: dict[str, str] = {}

    @property
    def shares(self) -> dict[str, float]:
        """Return the shares of the splits."""
        return {name: float(share) for name, share in self.splits.items() if name != "by"}

    def grows(self, path: str) -> bool:
        """Return true for a growing file. Its path is relative to the description."""
        if isinstance(self.live, bool):
            return self.live
        return any(glob_regex(glob).match(path) for glob in self.live)


REQUIRED = ("name", "description", "license", "url", "creator", "date_published")
"""Keys without which there is no Croissant file, by the specification."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def _is_url(text: str) -> bool:
    return re.fullmatch(r"https?://\S+", text) is not None


def _is_date(text: str) -> bool:
    """Return true for a calendar date, with or without a time."""
    try:
        return _DATE.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


_PAGE = (_is_url, "a URL such as https://example.org/corpus")
_LICENCE = (_is_url, "a URL such as https://spdx.org/licenses/NAME.html")
_DAY = (_is_date, "a date such as 2026-01-31")

_FORMS: dict[str, tuple[Callable[[str], object], str]] = {
    "url": _PAGE,
    "license": _LICENCE,
    "same_as": _PAGE,
    "sd_license": _LICENCE,
    "date_published": _DAY,
    "date_created": _DAY,
    "date_modified": _DAY,
    "in_language": (WELL_FORMED.fullmatch, "a BCP 47 code such as de or zh-Hant"),
    "version": (VERSION.fullmatch, "MAJOR.MINOR.PATCH (1.0.0) of the data (that of Croissant is about.croissant)"),
}
"""By key, a test of its values, and words for what passes; NAME is that of a licence."""


def as_list(value: Any) -> list[Any]:
    """Return a value as a list: none as an empty one, a single one in a list."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def read_about(section: ConfigNode, required: Sequence[str] = REQUIRED) -> About:
    """Return the settings of an ``about:`` section, with all required keys.

    Args:
        section: Section of the configuration.
        required: keys that must be given.

    Raises:
        ConfigError: naming the key that is missing, or is not what it should be.
    """
    source = section if section.value is not None else ConfigNode({}, section.name, section.lines)
    if isinstance(source.value, dict) and isinstance(source.value.get("version"), int | float):
        raise source.error(("version",), f"expected {_FORMS['version'][1]}, got {source.value['version']!r}")
    about = settings.convert(source, About, "about")
    missing = [key for key in required if not getattr(about, key)]
    if missing:
        also = f"; also missing: {', '.join(f'about.{key}' for key in missing[1:])}" if missing[1:] else ""
        raise source.error((), f"expected about.{missing[0]}, which Croissant requires, got none{also}")
    _check_forms(source, about)
    _check_agents(source, about)
    splits_of_files(source)
    return about


def _check_forms(source: ConfigNode, about: About) -> None:
    for key, (fits, expected) in _FORMS.items():
        for value in as_list(getattr(about, key)):
            if not fits(value):
                name = "CC-BY-4.0" if " " in value else value
                raise source.error((key,), f"expected {expected.replace('NAME', name)}, got {value!r}")
    for i, glob in enumerate(about.live if isinstance(about.live, list) else ()):
        with source.errors_at("live", i):
            glob_regex(glob)


def _check_agents(source: ConfigNode, about: About) -> None:
    for key in ("creator", "publisher"):
        agents = getattr(about, key)
        for i, agent in enumerate(as_list(agents)):
            if agent.type is None:
                place = (key, i, "type") if isinstance(agents, list) else (key, "type")
                raise source.error(place, "expected Organization or Person, got none")


def splits_of_files(section: ConfigNode) -> dict[str, float]:
    """Return the splits of a mix's files, with their shares; none if it does not.

    Raises:
        ConfigError: if the splits of an ``about:`` section are not what they should be.
    """
    value = section.value.get("splits") if isinstance(section.value, dict) else None
    if value is None or value == {}:
        return {}
    if not isinstance(value, dict):
        raise section.error(
            ("splits",), f"expected splits with their shares, {{train: 0.98, test: 0.02}}, got {value!r}"
        )
    shares = {str(name): share for name, share in value.items() if name != "by"}
    by = value.get("by", "rows")
    if by not in ("rows", "file"):
        raise section.error(("splits", "by"), f"expected rows or file, got {by!r}")
    for name, share in shares.items():
        if not isinstance(share, int | float) or isinstance(share, bool):
            raise section.error(("splits", name), f"expected a share, a number above 0, got {share!r}")
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise section.error(("splits",), f"expected names of splits in letters and digits, got {name!r}")
    if not all(share > 0 for share in shares.values()) or abs(sum(shares.values()) - 1) >= 1e-9:
        raise section.error(("splits",), f"expected shares above 0 that sum up to 1, got {shares!r}")
    return {name: float(share) for name, share in shares.items()} if by == "file" else {}
