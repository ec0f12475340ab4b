"""What threads that work on something together need inside compiled loops: counters that each may
add to, and a way to wait that leaves the processor to others.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _add(context: Any, counters: Any, place: Any, more: Any) -> Any:
    """(counters, place, more) -> what a counter of a one-dimensional array was before so much was
    added. No other thread comes in between.
    """

    def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, values[0])
        counter = builder.gep(array.data, [values[1]])
        return builder.atomic_rmw("add", counter, values[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), generate


added: Any = intrinsic(_add)


def _leave_core(context: Any) -> Any:
    """() -> nothing: let another thread have the processor, if one waits for it."""

    def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return target.get_dummy_value()

    return types.void(), generate


leave_core: Any = intrinsic(_leave_core)
