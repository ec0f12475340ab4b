"""What the processor can do. The compiler that knows it is loaded when it is asked."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# How products of bytes are added up: the first that a processor has, by what all of them must be
# there as LLVM calls it.
_BYTE_PRODUCTS = {
    "AMX": ("amx-int8", "amx-tile", "avx512vnni", "avx512vl"),
    "AVX-512 VNNI": ("avx512vnni", "avx512vl"),
    "AVX-VNNI": ("avxvnni", "fma"),
    "AVX2": ("avx2", "fma"),
    "DotProd": ("dotprod",),
}

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@cache
def byte_products() -> str | None:
    """By which instructions kernels may add up products of bytes: AMX (Intel's servers since
    Sapphire Rapids), AVX-512 VNNI (those since Ice Lake, AMD since Zen 4), AVX-VNNI (Intel's
    laptops since Alder Lake), AVX2 (nearly all other x86) or ARM's DotProd (Graviton 2, Apple's M1
    and later); None where it has none of them.

    NUMBA_CPU_FEATURES and NUMBA_CPU_NAME=generic count where they are set, since Numba compiles for
    them.
    """
    from llvmlite import binding
    from numba.core import config

    # Numba sets its settings by name, so its types do not know them.
    told: str | None = getattr(config, "CPU_FEATURES")  # noqa: B009
    if told is not None:
        has = {name.removeprefix("+") for name in told.split(",") if name.startswith("+")}
    else:
        has = {name for name, there in binding.get_host_cpu_features().items() if there}
    names = (name for name, all_ in _BYTE_PRODUCTS.items() if has.issuperset(all_))
    return next((name for name in names if name != "AMX" or _may_use_matrices()), None)


def _may_use_matrices() -> bool:
    """Ask the kernel for AMX's registers, which it keeps for none that has not asked (Linux,
    Documentation/arch/x86/xstate.rst). It is for this process, all its threads, and forks.
    """
    if sys.platform != "linux":
        return False
    system = ctypes.CDLL(None)
    return system.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


@cache
def third_cache_keeps_streams() -> bool:
    """Whether memory that was asked for past the second cache is in the third one when it is read
    again: with AMD's Zen, where asking so was measured to help.

    The third cache of Intel's servers holds what the second gave up. What passes the second by is
    fetched from memory each time, which made a stored memory twice as dear there.
    """
    from llvmlite import binding
    from numba.core import config

    name: str | None = getattr(config, "CPU_NAME")  # noqa: B009
    return (name or binding.get_host_cpu_name()).startswith("znver")
