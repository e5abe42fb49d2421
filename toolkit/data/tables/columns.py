"""The types of columns as the footers of Parquet files, and schemas of Arrow files, have them; rows are not read."""

from collections.abc import Collection
from typing import Any

from toolkit.data.schema import ANY, BOOL, FLOAT, FLOAT32, INT, STR, Type, list_of, nullable
from toolkit.data.tables.declared import ROW, types_in


def types_of(about: Any, also_null: Collection[str] | None = None) -> dict[str, Type]:
    """Return the types of the columns of a Parquet file; those without a null by its statistics are not nullable.

    A file of a set that was exported says its types itself.

    Args:
        about: the file's metadata, of pyarrow.
        also_null: columns in which something becomes null; None if no values were looked at: numbers in lists may.
    """
    nulls = leaves_with_nulls(about)
    inside: set[str] = set()
    if also_null is None:
        inside = {leaf.path for leaf in _leaves(about) if leaf.max_repetition_level and leaf.physical_type in _FLOATS}
        also_null = ()
    nulls |= {leaf.path for leaf in _leaves(about) if leaf.path.partition(".")[0] in also_null}
    columns = about.schema.to_arrow_schema()
    declared = types_in(columns.metadata)
    return {
        field.name: (declared or {}).get(field.name)
        or _placed(field.name, field.type, (nulls, inside), may_be_null=field.nullable or field.name in also_null)
        for field in columns
        if declared is None or field.name != ROW
    }


_FLOATS = ("FLOAT", "DOUBLE")


def _leaves(about: Any) -> list[Any]:
    return [about.schema.column(i) for i in range(len(about.schema))]


def leaves_with_nulls(about: Any) -> set[str]:
    """Return the paths of the leaves of which not all row groups with rows have statistics that count no null."""
    results = set()
    for group in range(about.num_row_groups):
        row_group = about.row_group(group)
        if not row_group.num_rows:  # a file without rows has such a group, without statistics
            continue
        for i in range(row_group.num_columns):
            column = row_group.column(i)
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                results.add(column.path_in_schema)
    return results


def _placed(path: str, type_: Any, nulls: tuple[Collection[str], Collection[str]], *, may_be_null: bool) -> Type:
    """Return the type of a column, or a field of one, by its path; an object is null where none of its fields tells.

    Args:
        path: Path of the column or field.
        type_: Type of Arrow.
        nulls: Paths of leaves with nulls, and of those in lists whose numbers may become null.
        may_be_null: True if the column or field may be null.
    """
    import pyarrow as pa

    if pa.types.is_struct(type_):
        inside = [type_.field(i) for i in range(type_.num_fields)]
        fields = [(item.name, _placed(f"{path}.{item.name}", item.type, nulls, may_be_null=True)) for item in inside]
        result = Type("object", fields=tuple(fields))
        told = any(inner.kind not in ("nullable", "any") for _, inner in fields)  # of a null object all are
        return result if told or not may_be_null else nullable(result)
    has_nulls, become_null = (
        any(leave == path or leave.startswith(f"{path}.") for leave in leaves) for leaves in nulls
    )
    result = plain_type(type_, inner_nulls=has_nulls or become_null)
    return nullable(result) if may_be_null and has_nulls else result


def plain_type(type_: Any, *, inner_nulls: bool = True) -> Type:
    """Return the type of the JSON values that a type of Arrow becomes.

    Args:
        type_: Type of Arrow.
        inner_nulls: True if what is inside may be null.
    """
    import pyarrow as pa

    def inner(of: Any) -> Type:
        type_ = plain_type(of, inner_nulls=inner_nulls)
        return nullable(type_) if inner_nulls else type_

    is_ = pa.types
    if is_.is_dictionary(type_):
        return plain_type(type_.value_type)
    if is_.is_struct(type_):
        inside = [type_.field(i) for i in range(type_.num_fields)]
        return Type("object", fields=tuple((item.name, inner(item.type)) for item in inside))
    if is_.is_map(type_):
        return Type("map", inner(type_.item_type))
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        return list_of(inner(type_.value_type))
    known = (
        (is_.is_boolean, BOOL),
        (is_.is_integer, INT),
        (is_.is_float64, FLOAT),
        (is_.is_floating, FLOAT32),
        (is_.is_string, STR),
        (is_.is_large_string, STR),
        (is_.is_date, STR),
        (is_.is_timestamp, STR),
        (is_.is_time, STR),
    )
    return next((result for is_such, result in known if is_such(type_)), ANY)
