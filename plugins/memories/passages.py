"""The later passages of long memories, each with a vector of its own, so that a memory is found by
the meaning of its end as well.

A model reads the beginning of a text. Of a memory that goes on after it, every further passage
(storage/text/passages.py) is embedded too, and such a memory is as near to a query as the nearest
of its passages (max-sim). The vectors are a second index with ordinals of their own, *chunks*,
given out in one run per memory and never twice:

    memory_chunks          one vector per chunk
    memory_chunk_runs      memory ordinal -> first chunk and how many
    memory_chunk_owners    chunk          -> memory ordinal

Invariant: a memory has chunks exactly when its row counts them and the field "chunked" holds it.
plugins/memories/rows.py sees to that: they are stored and removed in the transaction of the vector
they go with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from runtime.api.context import ReadContext, WriteContext
from storage.indexes import ColumnIndex, Scan, VectorIndex, ordinals_of

_RUN = np.dtype([("first", "<u4"), ("count", "<u4")])
_OWNER = np.dtype([("memory", "<u4")])
_NOBODY = b"\xff\xff\xff\xff"

MEMORY_CHUNKS = VectorIndex("memory_chunks")
CHUNK_RUNS = ColumnIndex("memory_chunk_runs", _RUN, bytes(_RUN.itemsize))
CHUNK_OWNERS = ColumnIndex("memory_chunk_owners", _OWNER, _NOBODY)
INDEXES = (MEMORY_CHUNKS, CHUNK_RUNS, CHUNK_OWNERS)


def put_chunks(
    ctx: WriteContext, ordinal: int, vectors: Mapping[str, Sequence[NDArray[np.float32]]]
) -> None:
    """Store the further vectors of a memory that has no chunks: by space, as many in each."""
    count = max(map(len, vectors.values()))
    if not count:
        return
    chunks = [ctx.next_ordinal("memory_chunks") for _ in range(count)]
    ctx.index(CHUNK_RUNS).put(ordinal, np.array((chunks[0], count), _RUN).tobytes())
    for number, chunk in enumerate(chunks):
        for space, own in vectors.items():
            ctx.index(MEMORY_CHUNKS).put(space, chunk, own[number])
        ctx.index(CHUNK_OWNERS).put(chunk, ordinal.to_bytes(4, "little"))


def put_in_further_space(
    ctx: WriteContext, space: str, ordinal: int, vectors: Sequence[NDArray[np.float32]]
) -> None:
    """Store the further vectors of a memory that has its chunks in one space in another one."""
    for chunk, vector in zip(_run_of(ctx, ordinal), vectors, strict=False):
        ctx.index(MEMORY_CHUNKS).put(space, chunk, vector)


def delete_chunks(ctx: WriteContext, spaces: Iterable[str], ordinal: int) -> None:
    """Remove a memory's chunks, if it has any, from these spaces."""
    held = list(spaces)
    for chunk in _run_of(ctx, ordinal):
        for space in held:
            ctx.index(MEMORY_CHUNKS).delete(space, chunk)
        ctx.index(CHUNK_OWNERS).delete(chunk)
    ctx.index(CHUNK_RUNS).delete(ordinal)


def _run_of(ctx: ReadContext, ordinal: int) -> range:
    """A memory's chunks."""
    raw = ctx.index(CHUNK_RUNS).get(ordinal)
    if raw is None:
        return range(0)
    run = np.frombuffer(raw, _RUN)[0]
    return range(int(run["first"]), int(run["first"]) + int(run["count"]))


@dataclass(frozen=True, slots=True)
class ChunkScan:
    """How near each chunk of the tenant is to one query."""

    scan: Scan

    @classmethod
    def all(cls, ctx: ReadContext, space: str, queries: NDArray[np.float32]) -> list[ChunkScan]:
        """One for each of these queries, in one pass over the chunks."""
        return [cls(scan) for scan in ctx.index(MEMORY_CHUNKS).scan(space, queries)]

    def nearest(
        self, ctx: ReadContext, k: int, chunked: BitMap, allowed: BitMap
    ) -> NDArray[np.uint32]:
        """Ordinals of the allowed memories that the k nearest chunks belong to. chunked: all
        memories that have chunks.
        """
        wanted = chunked & allowed
        if not wanted:
            return np.zeros(0, np.uint32)
        # A filter that leaves most of them is cheaper to apply to what was found.
        among = (
            None
            if 2 * len(wanted) > len(chunked)
            else BitMap(_chunks_of(ctx, ordinals_of(wanted))[0])
        )
        found, _ = self.scan.best(2 * k if among is None else k, among)
        owners = BitMap(ctx.index(CHUNK_OWNERS).field("memory", found)) & wanted
        return ordinals_of(owners)

    def cosines(self, ctx: ReadContext, ordinals: NDArray[np.uint32]) -> NDArray[np.float32]:
        """(n,) the cosine of each memory's nearest chunk, at least 0; 0 without chunks."""
        chunks, counts = _chunks_of(ctx, ordinals)
        nearest = np.zeros(len(ordinals), np.float32)
        if len(chunks):
            has = counts > 0
            starts = np.cumsum(counts[has]) - counts[has]
            nearest[has] = np.maximum(np.maximum.reduceat(self.scan.at(chunks), starts), 0)
        return nearest


def _chunks_of(
    ctx: ReadContext, ordinals: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The chunks of these memories, one run after the other, and how many each has."""
    runs = ctx.index(CHUNK_RUNS).take(ordinals)
    counts = runs["count"].astype(np.int64)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return (np.repeat(runs["first"], counts) + within).astype(np.uint32), counts
