"""Check and print a configuration, or print its JSON Schema."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, ClassVar

from toolkit.align import align_config
from toolkit.command_options import Flag, Options as CommonOptions, Words
from toolkit.commands import _sections as sections
from toolkit.config.settings import ConfigNode, stages
from toolkit.data.document_fields import METADATA
from toolkit.data.schema import ANY, Type
from toolkit.describe.about import read_about
from toolkit.errors import ConfigError, MissingExtra, MissingModel
from toolkit.learn.annotate import annotate_config
from toolkit.learn.train import trained_models
from toolkit.rules import checker, expression_tree, expressions, ruleset
from toolkit.rules.rule import Rule
from toolkit.stages.context import Context, Outcome, show_settings
from toolkit.stages.declaration import Faults
from toolkit.tag import plan as tag_plan
from toolkit.whole_corpus import corpus_config


def faults(context: Context) -> list[str]:
    """Return the errors of each section, in run order."""
    faults = _Faults()
    with faults.collected():
        _ = context.dataset if context.has_dataset else None
    with faults.collected():
        _ = context.entries
    if context.has("align"):
        with faults.collected():
            align_config.read_section(context.section("align"))
    if context.has("tag"):
        _tag(context.section("tag"), faults)
    for name in filter(context.has, (*stages("whole"), "train")):
        _whole(context.section(name), name, faults)
    if context.has("annotate"):
        _annotate(context, faults)
    if context.has("mix"):
        _mix(context, faults)
        with faults.collected():
            for edition in sections.editions(context).values():
                _mix(edition, faults)
    if context.has(sections.TOKENIZE):
        with faults.collected():
            _mix(sections.with_tokens(context), faults)
    if context.has("about"):
        with faults.collected():
            read_about(context.section("about"), required=())
    return list(faults.messages)


class _Faults(Faults):
    """Collects errors; missing packages and unknown sets are none."""

    @contextmanager
    def collected(self) -> Iterator[None]:
        with super().collected(), suppress(MissingExtra, MissingModel, _NotKnown):
            yield


class _NotKnown(Exception):
    """The configuration depends on sets without saying how they are made."""


def _sets_on_disk() -> Mapping[str, Mapping[str, Type]]:
    """Stand for the sets on disk."""
    raise _NotKnown


def _tag(section: ConfigNode, errors: _Faults) -> None:
    if not isinstance(section.value, dict):
        with errors.collected():
            tag_plan.read_section(section)
        return
    for name in section.value:
        with errors.collected():
            tag_plan.read_sets(section, [name], _sets_on_disk)


def _whole(section: ConfigNode, name: str, errors: _Faults) -> None:
    for set_name in section.value:
        with errors.collected():
            place = section.at(set_name)
            if name == "train":
                place.value = trained_models.as_whole(place, set_name)
            corpus_config.check_entry(place, set_name, name)


def _annotate(context: Context, errors: _Faults) -> None:
    section = context.section("annotate")
    for name in section.value:
        with errors.collected():
            tag_plan.read_sets(annotate_config.as_tag(section, name, context.dataset), [name], _sets_on_disk)


def _mix(context: Context, errors: _Faults) -> None:
    with errors.collected():
        settings = sections.mix(context)
        label = settings.label  # that of a format is our own
        _compile([], label, errors)
        for stream in settings.streams:
            for rule in stream.all_rules:
                _compile([rule], label, errors)


def _compile(rules: list[Rule], label: str | None, errors: _Faults) -> None:
    """Compile a rule for documents with any attributes of any types."""
    with errors.collected():
        texts = [text for rule in rules for text in rule.expressions] + ([label] if label else [])
        parameters = {name for rule in rules for name in rule.parameters}
        keys = {"document", METADATA}  # whose own fields have types that the documents tell
        for text in texts:
            with suppress(expression_tree.ExpressionError):  # which is told where it is compiled
                keys |= expressions.keys_in(text)
        names = {key: checker.Name(ANY, f"document.{key}") for key in keys - parameters}
        ruleset.RuleSet(rules, names, ("document",), label)


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit config``.

    Attributes:
        config: configuration (YAML)
        overrides: settings that override the file's
        schema: print the JSON Schema (draft 2020-12), with all installed plugins
    """

    EXAMPLES: ClassVar = ("toolkit config -c my.yaml processes=4", "toolkit config --schema > toolkit.schema.json")

    config: Annotated[str | None, Flag("-c", "--config", metavar="FILE")] = None
    overrides: Annotated[tuple[str, ...], Words("KEY=VALUE")] = ()
    schema: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        """Raise ConfigError unless one of the two is asked for."""
        if self.schema == (self.config is not None) or (self.schema and self.overrides):
            raise ConfigError("expected either a configuration (-c FILE), or --schema alone")


def run(context: Context, options: Options) -> Outcome:
    """Print the settings as a command would have them, or the schema.

    Raises:
        ConfigError: with everything that is wrong with the settings, as far as it can be told without data.
    """
    if options.schema:
        import msgspec

        from toolkit.validate.yaml_schema import whole

        schema = whole()
        text = msgspec.json.format(msgspec.json.encode(schema)).decode()
        return Outcome(text=text, data=schema, for_programs=True)
    if context.is_dolma:
        advice = "`toolkit mix`, `tag` or `dedup` reads it, and shows what it does with --dry-run"
        raise ConfigError(f"{options.config}: expected a configuration of this toolkit, got one of Dolma's; {advice}")
    outcome = show_settings(context)
    outcome.text = outcome.text.rstrip("\n")
    if results := faults(context):
        raise ConfigError("\n".join(results))
    return outcome
