"""Operations on pointers for compiled code. numba has no words for them; each becomes an instruction or a few.

Indexes are in numbers, not bytes, and nothing is checked.
"""

import functools
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

inline = functools.partial(numba.njit, inline="always")
"""Decorator of functions whose code becomes part of those that call them."""

_WORD, _WIDE, _FLOAT = ir.IntType(64), ir.IntType(128), ir.FloatType()
LANES = 16
"""Numbers that are added up at once; the machine's vectors may be shorter."""


def _place(builder: Any, pointer: Any, index: Any) -> Any:
    return builder.gep(pointer, [index], inbounds=True)


def _load(builder: Any, pointer: Any, index: Any, type_: Any, align: int = 4) -> Any:
    return builder.load(_place_of(builder, pointer, index, type_), align=align)


def _place_of(builder: Any, pointer: Any, index: Any, type_: Any) -> Any:
    return builder.bitcast(_place(builder, pointer, index), type_.as_pointer())


@intrinsic
def offset(_: Any, array: Any, index: Any) -> Any:
    """Return the pointer to ``pointer[index]``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _place(builder, *arguments)

    return array(array, types.int64), codegen


@intrinsic
def prefetch(_: Any, array: Any, index: Any) -> Any:
    """Prefetch the memory at an index; nothing waits for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        text = ir.IntType(8).as_pointer()
        flags = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [text, flags, flags, flags]), "llvm.prefetch.p0i8"
        )
        place = builder.bitcast(_place(builder, *arguments), text)
        builder.call(function, [place, flags(0), flags(3), flags(1)])  # to be read, kept in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def eight_bytes(_: Any, array: Any, index: Any) -> Any:
    """Return the 8 bytes from an index as uint64, little-endian."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _load(builder, arguments[0], arguments[1], _WORD, align=1)

    return types.uint64(array, types.int64), codegen


@intrinsic
def put_eight_bytes(_: Any, array: Any, index: Any, word: Any) -> Any:
    """Write a uint64 as the 8 bytes from an index, little-endian."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, word = arguments
        builder.store(word, _place_of(builder, array, index, _WORD), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), codegen


@intrinsic
def ones(_: Any, bits: Any) -> Any:
    """Return how many bits of a uint64 are set."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def lowest_bit(_: Any, bits: Any) -> Any:
    """Return the index of the lowest set bit of a uint64.

    The number is not 0.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def high_product(_: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the product of two uint64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = builder.mul(*(builder.zext(argument, _WIDE) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(_WIDE, 64)), _WORD)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def float_of(_: Any, bits: Any) -> Any:
    """Return the float64 with these 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def add_lanes(_: Any, matrix: Any, rows: Any, n: Any, dim: Any, first: Any, out: Any) -> Any:
    """Add ``n`` rows of a float32 matrix to ``out``.

    Added are `LANES` numbers from ``first``, row by row.
    """
    vector = ir.VectorType(_FLOAT, LANES)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix, rows, n, dim, first, out = arguments
        target = _place_of(builder, out, first, vector)
        total = cgutils.alloca_once_value(builder, builder.load(target, align=4))
        with cgutils.for_range(builder, n) as loop:
            row = builder.sext(builder.load(_place(builder, rows, loop.index)), _WORD)
            place = builder.add(builder.mul(row, dim), first)
            source = _load(builder, matrix, place, vector)
            builder.store(builder.fadd(builder.load(total), source), total)
        builder.store(builder.load(total), target, align=4)
        return context.get_dummy_value()

    return types.void(matrix, rows, types.int64, types.int64, types.int64, out), codegen


@intrinsic
def dot_eights(_: Any, a: Any, matrix: Any, row: Any, n: Any) -> Any:
    """Return the dot product of ``n`` times eight numbers.

    They are those of ``a`` and of a matrix from the offset ``row``.

    Eight sums, whatever the machine has vectors for, then added in pairs.
    """
    vector = ir.VectorType(_FLOAT, 8)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, matrix, row, n = arguments
        total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * 8))
        with cgutils.for_range(builder, n) as loop:
            first = builder.mul(loop.index, ir.Constant(_WORD, 8))
            left = _load(builder, a, first, vector)
            right = _load(builder, matrix, builder.add(row, first), vector)
            builder.store(builder.fadd(builder.load(total), builder.fmul(left, right)), total)
        result = builder.load(total)
        for size in (4, 2, 1):
            halves = [
                builder.shuffle_vector(
                    result, result, ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(i, i + size)))
                )
                for i in (0, size)
            ]
            result = builder.fadd(*halves)
        return builder.extract_element(result, ir.Constant(ir.IntType(32), 0))

    return types.float32(a, matrix, types.int64, types.int64), codegen
