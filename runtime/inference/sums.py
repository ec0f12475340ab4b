"""Arithmetic of floats that comes out the same to the bit on every processor: sums in one order,
and products added to something with one rounding.

A compiled loop that may reorder a sum takes as many numbers at a time as the processor has room
for, and even two compilations for one processor need not agree.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES, CHAINS = 16, 2  # numbers added side by side; registers of them that do not wait for another
SUMMED = LANES * CHAINS  # a sum is of a multiple of so many
_FLOAT, _WORD = ir.FloatType(), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)


def _fused(builder: ir.IRBuilder, *values: Any) -> Any:
    kind = values[0].type
    name = "llvm.fma.f32" if kind == _FLOAT else f"llvm.fma.v{LANES}f32"
    declared = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), name
    )
    return builder.call(declared, values)


def _fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """(a, b, c) -> a · b + c, float32, rounded once."""

    def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return _fused(builder, *values)

    return types.float32(types.float32, types.float32, types.float32), generate


fma: Any = intrinsic(_fma)


def _summing(squares: bool) -> Any:
    def summed(context: Any, x: Any, count: Any) -> Any:
        def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            data = target.make_array(signature.args[0])(target, builder, values[0]).data
            before = builder.block
            loop, after = builder.append_basic_block("sum"), builder.append_basic_block("summed")
            builder.branch(loop)
            builder.position_at_end(loop)
            place = builder.phi(_WORD)
            totals = [builder.phi(_VECTOR) for _ in range(CHAINS)]
            added = []
            for chain, total in enumerate(totals):
                at = builder.gep(data, [builder.add(place, _WORD(chain * LANES))])
                numbers = builder.load(
                    builder.bitcast(at, _VECTOR.as_pointer()), align=4, typ=_VECTOR
                )
                added.append(
                    _fused(builder, numbers, numbers, total)
                    if squares
                    else builder.fadd(total, numbers)
                )
            following = builder.add(place, _WORD(SUMMED))
            none = ir.Constant(_VECTOR, [0.0] * LANES)
            for phi, first, later in [
                (place, _WORD(0), following),
                *((total, none, each) for total, each in zip(totals, added, strict=True)),
            ]:
                phi.add_incoming(first, before)
                phi.add_incoming(later, loop)
            builder.cbranch(builder.icmp_unsigned("<", following, values[1]), loop, after)
            builder.position_at_end(after)
            return _folded(builder, builder.fadd(added[0], added[1]))

        return types.float32(x, types.int64), generate

    return intrinsic(summed)


def _folded(builder: ir.IRBuilder, vector: Any) -> Any:
    """The sum of a register, one half on the other until one number is left."""
    width = LANES
    while width > 1:
        width //= 2
        halves = [
            builder.shuffle_vector(
                vector,
                ir.Constant(vector.type, ir.Undefined),
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(at, at + width))),
            )
            for at in (0, width)
        ]
        vector = builder.fadd(halves[0], halves[1])
    return builder.extract_element(vector, ir.IntType(32)(0))


# (x, count) -> the sum of the first `count` of a float32 array, and of their squares; count a
# multiple of SUMMED.
total_of: Any = _summing(squares=False)
squares_of: Any = _summing(squares=True)
