"""Memory that a loop will read soon, asked for ahead, and past the second cache.

A search reads megabytes that nothing reads again before the next one: the model's weights, the
vectors of an account. Fetched like anything else they push out of the second cache what the
interpreter runs on, and whatever runs next waits for that. Asked for this way, they do not.

Only where the third cache then has them for the next search (processor.py); elsewhere nothing is
asked for, and the processor fetches what it reads as it likes.
"""

from __future__ import annotations

from typing import Any

from storage.indexes.kernels import Kernel
from storage.indexes.processor import third_cache_keeps_streams

LINE_BYTES = 64  # of a cache
_READ, _ONCE, _DATA = 0, 0, 1


class _Instruction(Kernel):
    """A kernel whose instructions are written by hand, compiled into each that calls it."""

    def _make(self) -> Any:
        from numba.extending import intrinsic

        return intrinsic(self._function)


def _fetch(context: Any, array: Any, place: Any) -> Any:
    """Ask for the line of the cache that an element of an array is in, which need not be there."""
    from numba.core import types

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        held = target.make_array(signature.args[0])(target, builder, values[0])
        write_fetch(builder, builder.gep(held.data, [values[1]]))
        return target.get_dummy_value()

    return types.void(array, types.int64), generate


def write_fetch(builder: Any, pointer: Any) -> None:
    """Write the instruction, for llvmlite's builder, where it helps. It cannot fail, wherever this
    points.
    """
    if not third_cache_keeps_streams():
        return
    from llvmlite import ir
    from numba.core import cgutils

    number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    told = [number(each) for each in (_READ, _ONCE, _DATA)]
    builder.call(instruction, [builder.bitcast(pointer, byte), *told])


fetch = _Instruction(_fetch, None)
