"""How loops are compiled: ahead of their first call, cached beside their module, without the interpreter's lock.

Arrays are C-ordered. `given` arrays are only read, and may be views of stored bytes, which NumPy marks read-only; `made` arrays are
written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding
from numba import from_dtype, njit, types
from numba.core import config

INT8, INT32, INT64 = types.int8, types.int32, types.int64
UINT16, UINT32, UINT64 = types.uint16, types.uint32, types.uint64
FLOAT32, BOOL = types.float32, types.boolean


def given(kind: Any, dimensions: int = 1) -> types.Array:
    return types.Array(kind, dimensions, "C", readonly=True)


def made(kind: Any, dimensions: int = 1) -> types.Array:
    return types.Array(kind, dimensions, "C")


def records(dtype: np.dtype) -> types.Record:
    """The kind of a structured array's elements."""
    return from_dtype(dtype)


def compiled(*arguments: Any, result: Any = types.void) -> Callable[[Callable], Callable]:
    """Decorator: compile for exactly these argument types. Float sums may be reordered, so that they use the processor's vectors."""
    return njit(result(*arguments), nogil=True, fastmath=True, cache=True)


def part(function: Callable) -> Callable:
    """Decorator: a piece of compiled functions of the same file, compiled into each that calls it."""
    return njit(nogil=True, fastmath=True, error_model="numpy")(function)


@cache
def adds_products_of_bytes() -> bool:
    """Whether what is compiled here may use AVX-512 VNNI: four products of bytes added to a sum by one instruction.

    NUMBA_CPU_FEATURES and NUMBA_CPU_NAME=generic count where they are set, since Numba compiles for them.
    """
    if config.CPU_FEATURES is not None:
        return "+avx512vnni" in config.CPU_FEATURES.split(",")
    return binding.get_host_cpu_features().get("avx512vnni", False)
