"""Nearest unit vectors by dot product: rows in a table, a matrix in memory, cells of a large
tenant's, and of a very large one HNSW to find the centres of these.

It owns the vectors of a tenant's ordinals, by `space`: the name of a model and its width, so that
vectors of two models never meet in one matrix. It does not know what was embedded, nor which
ordinals a caller may see: that is `allowed`.

Key layout, for an index named `x`:

    x.vectors  (space, ordinal)  -> 8 bytes: sequence of the commit that put it, then float32
                                    numbers; all little-endian

The rows are the truth. Everything else is derived from them and may be lost at any time:
- the resident state of a tenant (`ResidentCache`): per space a matrix of eight-bit codes
  (storage/indexes/vectors/quantised.py), where each ordinal's row is (storage/indexes/row_map.py),
  and a *stamp*, the sequence of the last change known of each ordinal. It is read from the first
  search's snapshot and fed by `apply` after commits;
- cells, above `exact_max` vectors (storage/indexes/vectors/cells.py): a search looks at the vectors
  of those nearest to it. They only propose candidates: scores never come from them. They are
  learned on a thread of its own (storage/indexes/builder.py). Vectors that are in no cell yet are
  *pending* and are scanned, so an answer never depends on how far that has come;
- a file under `indexes/` (storage/indexes/kept.py) of what is resident of a large space, so that
  its next load need not open every row. What changed since is told by tokens
  (storage/indexes/change_tokens.py); a file that is damaged or foreign is ignored.

Invariants
- A change takes effect on the resident state only when it is newer than the ordinal's stamp. So
  changes may arrive twice, or while the state is being loaded, from `apply` and from a snapshot, in
  any order. Once nothing is missing, all that are deleted share one stamp, the newest commit's.
- A vector that is deleted takes no memory: its row goes when the matrix is next made anew, which is
  at the latest when more rows are deleted than live.
- After `apply` has returned for a commit, no later search answers from the state before it.
- `search` is exact where it scans: what the codes leave undecided is scored again from the stored
  rows, as are all scores that it gives. A `Scan` is made for ranking hundreds of candidates and
  answers from the codes, off by about 0.0005.
- Rows of the matrix are written once; an update takes a new row. A search keeps the matrix it
  started with and needs no lock.
- A removed vector is out of every answer at once; its bytes leave the file when that is next
  written, and with the tenant's key.
"""

from storage.indexes.vectors.index import EXACT_MAX, BoundVectors, VectorIndex
from storage.indexes.vectors.scan import Scan

__all__ = ["EXACT_MAX", "BoundVectors", "Scan", "VectorIndex"]
