"""What an installation brings along may be used by everybody, with code of any licence."""

import pytest

from tests.licences import Kind, kind_of, licences


@pytest.mark.parametrize(
    ("licence", "kind"),
    [
        ("MIT", "permissive"),
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", "permissive"),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", "permissive"),
        ("MPL-2.0 AND MIT", "files"),
        ("MPL-1.1 OR GPL-2.0-only OR LGPL-2.1-or-later", "files"),
        ("GNU Lesser General Public License v3 (LGPLv3)", "copyleft"),
        ("MIT AND GPL-3.0-only", "copyleft"),
        ("GPL-2.0-only OR MIT", "permissive"),
        ("CC-BY-SA-3.0", "copyleft"),
        ("Dual License", "copyleft"),
        ("?", "copyleft"),
    ],
)
def test_a_licence_is_of_a_kind_and_what_nobody_knows_is_of_the_worst(licence: str, kind: Kind) -> None:
    assert kind_of(licence) == kind


def test_the_base_installation_brings_no_copyleft() -> None:
    """Three packages have the MPL, which is about changes to their own files alone."""
    found = {each.package: each.kind for each in licences()}
    assert len(found) > 20
    assert {name for name, kind in found.items() if kind != "permissive"} == {"certifi", "publicsuffixlist", "tqdm"}


def test_packages_of_extras_are_looked_at_too() -> None:
    names = {each.package for each in licences(["parquet"])}
    assert "numpy" in names
    assert {each.package for each in licences()} <= names
