"""What the processor can do. The compiler that knows it is loaded when it is asked."""

from __future__ import annotations

from functools import cache


@cache
def has_avx512_vnni() -> bool:
    """Whether kernels may use AVX-512 VNNI: four products of bytes added to a sum by one
    instruction.

    NUMBA_CPU_FEATURES and NUMBA_CPU_NAME=generic count where they are set, since Numba compiles for
    them.
    """
    from llvmlite import binding
    from numba.core import config

    # Numba sets its settings by name, so its types do not know them.
    features: str | None = getattr(config, "CPU_FEATURES")  # noqa: B009
    if features is not None:
        return "+avx512vnni" in features.split(",")
    return binding.get_host_cpu_features().get("avx512vnni", False)


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
