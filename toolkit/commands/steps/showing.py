"""Dry runs: the configuration as it is resolved, and what would be done."""

from typing import Any

from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome
from toolkit.config import settings as config
from toolkit.storage_options import StorageOptions


def show_plan(context: Context, plan: dict[str, Any]) -> Outcome:
    """Return the outcome of a dry run; of a share, with what it has of all that there is."""
    if context.share:
        plan = {"share": context.share.plan(), **plan}
    shown = show_settings(context)
    shown.text += "\n# plan\n" + config.dump(plan)
    shown.data["plan"] = plan
    return shown


def show_settings(context: Context) -> Outcome:
    """Return the configuration with overrides, variables of the environment and defaults; in the text without those."""
    resolved = config.plain(context.config)
    given = {
        key: value for key, value in resolved.items() if value not in (None, [], {}, config.plain(StorageOptions()))
    }
    return Outcome(text=config.dump(given), data={"settings": resolved})
