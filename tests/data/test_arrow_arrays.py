"""Arrays that are built from buffers have the values that pyarrow builds from the same objects."""

from typing import Any

import pytest

from toolkit.data.tables.to_arrow import arrow_array

pa = pytest.importorskip("pyarrow", reason="arrays need pyarrow")

LEAVES: dict[str, list[Any]] = {
    "string": ["", "é", None],
    "large_string": ["abc", None, "🙂"],
    "int64": [0, None, -(1 << 63)],
    "float64": [None, 0.5, float("inf")],
    "bool_": [True, None, False],
}


@pytest.mark.parametrize("leaf", LEAVES)
def test_values_and_nulls_are_those_of_pyarrow(leaf: str) -> None:
    type_, some = getattr(pa, leaf)(), LEAVES[leaf]
    objects = [{"a": value, "b": some} for value in some] + [{"b": None}, {"a": some[0], "unknown": 1}, {}, None]
    object_ = pa.struct({"a": type_, "b": pa.list_(type_)})
    for values, of in (
        (some, type_),
        ([some, [], None], pa.list_(type_)),
        (objects, object_),
        ([objects, None, []], pa.list_(object_)),
        ([{"inner": item} for item in objects], pa.struct({"inner": object_})),
        ([{"a": value} for value in some] + [{}], pa.struct({"a": type_})),
        ([None, None], object_),
        ([], object_),
    ):
        result, expected = arrow_array(values, of), pa.array(values, of)
        result.validate(full=True)
        assert result.equals(expected)
        assert result.null_count == expected.null_count
