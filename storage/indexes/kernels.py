"""How loops are compiled: for given types, cached beside their module, mostly without the
interpreter's lock, and loaded when the first of them is called, since the compiler takes as long to
load as a command that compiles nothing takes altogether.

What no process has compiled yet a process of its own compiles, which then ends: the compiler keeps
hundreds of megabytes that a service would never give back.

Arrays are C-ordered. An `in_array` is only read, and may be a view of stored bytes, which NumPy
marks read-only; an `out_array` is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import RLock, Thread
from time import monotonic, sleep
from typing import Any, BinaryIO, cast

import numpy as np

log = logging.getLogger("mneme.indexes")

# Names of Numba's types.
INT8, INT32, INT64 = "int8", "int32", "int64"
UINT16, UINT32, UINT64 = "uint16", "uint32", "uint64"
FLOAT32, BOOL = "float32", "boolean"

COMPILING_SECONDS_MAX = 60  # one module's loops, on a busy machine
ALL_COMPILED_SECONDS_MAX = 300
_PAUSE_SECONDS_MIN, _PAUSE_SECONDS_MAX = 0.001, 0.05
_SCIPY = "scipy.linalg"
_loading = RLock()
_declared: list[Kernel] = []
_known: dict[int, Kernel] = {}  # by id(): of each, and of what was compiled of it
_left_to_another = 0  # how many were declared when a process was asked to compile them all
compiles_apart = True  # False in that process


@dataclass(frozen=True, slots=True)
class Array:
    """The type of an array; kind: of its elements, a name or a structured type."""

    kind: str | np.dtype
    dimensions: int
    readonly: bool


def in_array(kind: str | np.dtype, dimensions: int = 1) -> Array:
    """The type of an argument that is read."""
    return Array(kind, dimensions, readonly=True)


def out_array(kind: str | np.dtype, dimensions: int = 1) -> Array:
    """The type of an argument that is written."""
    return Array(kind, dimensions, readonly=False)


class Kernel:
    """A loop, compiled or loaded when it is first called."""

    def __init__(self, function: Callable, signature: tuple[Any, ...] | None, **options: Any):
        """signature: the types of the result, None for nothing, and of each argument; without it,
        the loop is compiled into each kernel that calls it.
        """
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self._function, self._signature, self._options = function, signature, options
        self._compiled: Callable | None = None
        # Its own and those of what it calls.
        self._sources, self._constants = {function.__code__.co_filename}, set[str]()
        _declared.append(self)
        _known[id(self)] = self

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compiled())(*arguments)

    def compiled(self) -> Callable:
        """What Numba makes of it, and of what it calls."""
        with _loading:
            if self._compiled is None:
                # Numba looks what a loop calls up among the names of its module, and takes nothing
                # there but what is compiled itself.
                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    found = names.get(name)
                    called = _known.get(id(found))
                    if called is not None:
                        names[name] = called.compiled()
                        self._sources |= called._sources
                        self._constants |= called._constants
                    elif isinstance(found, int | float | np.generic):
                        self._constants.add(f"{name} = {found!r}")
                    elif (written := getattr(found, "_defn", None)) is not None:
                        self._sources.add(written.__code__.co_filename)  # by hand: an intrinsic
                self._compiled = self._make()
                _known[id(self._compiled)] = self
        return self._compiled

    def _make(self) -> Callable:
        from numba import njit

        signature = None if self._signature is None else _signature(self._signature)
        with _without_linear_algebra():
            made = njit(**self._options)(self._function)
            if signature is not None:
                _note_what_is_in(made, self._sources, self._constants)
                if not _is_kept(made, signature):
                    _compile_apart()
                with _one_at_a_time(made):
                    made.compile(signature)
                made.disable_compile()
        return made


def _note_what_is_in(made: Any, sources: Collection[str], constants: Collection[str]) -> None:
    """Have what was compiled before count as another loop's once any of these files or numbers has
    changed: Numba looks at the file in which a loop stands, while what it calls, and the numbers
    that it takes from elsewhere, are compiled into it.
    """
    file = made._cache._cache_file
    digests = (hashlib.sha256(Path(each).read_bytes()).digest() for each in sorted(sources))
    file._source_stamp = (file._source_stamp, *digests, *sorted(constants))


def _is_kept(made: Any, signature: Any) -> bool:
    """Whether the loop was compiled before, for this processor."""
    cache = made._cache
    key = cache._index_key(signature, made.targetctx.codegen())
    return key in cache._cache_file._load_index()


def _compile_apart() -> None:
    """Have a process compile all that is declared, unless one was asked to. What it fails in is
    compiled here.
    """
    global _left_to_another
    if not compiles_apart or _left_to_another == len(_declared):
        return
    _left_to_another = len(_declared)
    modules = sorted({each._function.__module__ for each in _declared} - {"__main__"})
    asked = f"from {__name__} import compile_modules; compile_modules({modules!r})"
    found_here = os.pathsep.join(filter(None, sys.path))
    try:
        # Its end of the pipe closes when this process ends, however that comes.
        with subprocess.Popen(
            [sys.executable, "-P", "-c", asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": found_here},
            start_new_session=True,
        ) as compiling:
            try:
                status = compiling.wait(ALL_COMPILED_SECONDS_MAX)
            finally:
                compiling.kill()
    except (OSError, subprocess.TimeoutExpired) as failed:
        log.warning("loops are compiled in this process: %s", failed)
    else:
        if status:
            log.warning("loops are compiled in this process; another one ended with %d", status)


def compile_modules(modules: Collection[str]) -> None:
    """Compile what these modules declare, in this process, which ends with the one that asked for
    it: with its standard input.
    """
    global compiles_apart

    def end_with_input() -> None:
        os.read(0, 1)
        os._exit(1)

    Thread(target=end_with_input, daemon=True).start()
    compiles_apart = False
    for name in modules:
        importlib.import_module(name)
    load_kernels()


@contextlib.contextmanager
def _one_at_a_time(made: Any) -> Iterator[None]:
    """Of processes that start together one compiles a loop, and the others find it in the cache,
    where nobody waits. Each compiles for itself where a file cannot be locked, or the one takes too
    long.
    """
    code = made.py_func.__code__
    cached = f"*.{made.py_func.__qualname__}-{code.co_firstlineno}.*.nbi"
    if any(Path(made.stats.cache_path).glob(cached)):
        yield
        return
    with open(code.co_filename, "rb") as held:
        until, pause = monotonic() + COMPILING_SECONDS_MAX, _PAUSE_SECONDS_MIN
        while _is_locked_by_another(held) and monotonic() < until:
            sleep(pause)
            pause = min(pause * 2, _PAUSE_SECONDS_MAX)
        yield


def _is_locked_by_another(file: BinaryIO) -> bool:
    """Lock it, if nobody has."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False


@contextlib.contextmanager
def _without_linear_algebra() -> Iterator[None]:
    """Numba imports SciPy's linear algebra where it is installed, a tenth of a start, to know how
    to multiply matrices: no loop here asks it to.
    """
    if "numba.np.arraymath" in sys.modules or _SCIPY in sys.modules:
        yield
        return
    sys.modules[_SCIPY] = cast(Any, None)  # as if it were not installed
    try:
        yield
    finally:
        del sys.modules[_SCIPY]


def load_kernels() -> None:
    """Load all that are declared so far: half a second that no call then waits for."""
    for each in list(_declared):
        each.compiled()


def kernel(
    *arguments: str | Array,
    result: str | None = None,
    reorders: bool = True,
    brief: bool = False,
) -> Callable[[Callable], Kernel]:
    """Decorator: compile for exactly these argument types. Float sums may be reordered, so that
    they use the processor's vectors, unless it is told not to.

    brief  whether it takes microseconds, however large the account, as over the some hundred
           candidates of a search: then it keeps the interpreter's lock, which would be longer in
           coming back than it works
    """

    def declared(function: Callable) -> Kernel:
        signature = (result, *arguments)
        return Kernel(function, signature, nogil=not brief, fastmath=reorders, cache=True)

    return declared


def inline(function: Callable) -> Kernel:
    """Decorator: a piece of compiled functions, compiled into each that calls it; float sums may be
    reordered, so that two compilations need not agree to the bit.
    """
    return Kernel(function, None, nogil=True, fastmath=True, error_model="numpy")


def exact(function: Callable) -> Kernel:
    """Decorator: as inline, and nothing is reordered."""
    return Kernel(function, None, nogil=True, error_model="numpy")


def _signature(declared: tuple[Any, ...]) -> Any:
    from numba import from_dtype, types

    def kind(named: str | np.dtype) -> Any:
        return getattr(types, named) if isinstance(named, str) else from_dtype(named)

    result, *arguments = declared
    given = [
        types.Array(kind(each.kind), each.dimensions, "C", readonly=each.readonly)
        if isinstance(each, Array)
        else kind(each)
        for each in arguments
    ]
    return (types.void if result is None else kind(result))(*given)
