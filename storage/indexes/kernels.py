"""How loops are compiled: ahead of their first call, cached beside their module, without the
interpreter's lock.

Arrays are C-ordered. An `in_array` is only read, and may be a view of stored bytes, which NumPy
marks read-only; an `out_array` is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import from_dtype, njit, types

INT8, INT32, INT64 = types.int8, types.int32, types.int64
UINT16, UINT32, UINT64 = types.uint16, types.uint32, types.uint64
FLOAT32, BOOL = types.float32, types.boolean


def in_array(kind: Any, dimensions: int = 1) -> types.Array:
    """The type of an argument that is read."""
    return types.Array(kind, dimensions, "C", readonly=True)


def out_array(kind: Any, dimensions: int = 1) -> types.Array:
    """The type of an argument that is written."""
    return types.Array(kind, dimensions, "C")


def records(dtype: np.dtype) -> types.Type:
    """The kind of a structured array's elements."""
    return from_dtype(dtype)


def kernel(
    *arguments: Any, result: Any = types.void, reorders: bool = True
) -> Callable[[Callable], Callable]:
    """Decorator: compile for exactly these argument types. Float sums may be reordered, so that
    they use the processor's vectors, unless it is told not to.
    """
    return njit(result(*arguments), nogil=True, fastmath=reorders, cache=True)


def inline(function: Callable) -> Callable:
    """Decorator: a piece of compiled functions of the same file, compiled into each that calls
    it.
    """
    return njit(nogil=True, fastmath=True, error_model="numpy")(function)
