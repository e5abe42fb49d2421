"""Compute percentile ranks within groups, and fitted calibration maps."""

from typing import Annotated, ClassVar

from toolkit.command_options import Configured, Flag, StageOptions
from toolkit.commands.dedup import make_sets, plan_of, stage_of
from toolkit.errors import ConfigError
from toolkit.stages.context import Context, Outcome


class Options(Configured, StageOptions, frozen=True, kw_only=True):
    """Options of ``toolkit calibrate``.

    Attributes:
        refit: fit maps again, on all present documents; without it, maps stay as they are
    """

    EXAMPLES: ClassVar = ("toolkit calibrate -c my.yaml", "toolkit calibrate -c my.yaml --refit")

    refit: Annotated[bool, Flag()] = False


def run(context: Context, options: Options) -> Outcome:
    """Make the sets of the section ``calibrate:``.

    Raises:
        ConfigError: as for all stages, and if nothing can be fitted anew.
    """
    plan = plan_of(context, "calibrate")
    if options.refit and not any(entry.configured().FITTED for entry in plan.entries):
        raise ConfigError("--refit: expected a set of `kind: map` in the section `calibrate:`, got none")
    if options.refit and options.shard is not None:
        raise ConfigError("--refit: expected a run of all shards, got a share: a map is fitted on all shards together")
    return make_sets(context, options, plan, refit=options.refit)


STAGE = stage_of("calibrate")
