"""Products of matrices, a tile at a time: the product of a few rows and 32 columns, whose sums stay
in registers until they are whole.

Compiled loops would fetch and store a sum for each few products; a tile's instructions are written
by hand. How many rows it has, and how many of its columns it goes over at a time, depends on how
many registers the processor has, and how wide they are. A sum is added up in the same order
whatever they are, so it is the same to the bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from storage.indexes import byte_products


class Shape(NamedTuple):
    """rows: of a tile; vector: numbers of a register; vectors: how many registers of columns are
    gone over at a time. Sums, columns and what a row is made of fill the registers.
    """

    rows: int
    vector: int
    vectors: int


_SHAPES = {
    "AMX": Shape(14, 16, 2),  # of floats, which it does not multiply
    "AVX-512 VNNI": Shape(14, 16, 2),  # 28 sums, two of columns, one of a row: 31 of 32 registers
    "AVX-VNNI": Shape(6, 8, 2),  # 15 of 16
    "AVX2": Shape(2, 8, 4),  # 8 sums, 4 of columns, and what stands between bytes and their sums
    "DotProd": Shape(6, 4, 4),  # 29 of 32
    None: Shape(4, 4, 2),
}
TILE_COLUMNS = 32
TILE_ROWS, VECTOR, VECTORS = _SHAPES[byte_products()]

INT, FLOAT, WORD = ir.IntType(32), ir.FloatType(), ir.IntType(64)
INTS, FLOATS = ir.VectorType(INT, VECTOR), ir.VectorType(FLOAT, VECTOR)


class Tile(ABC):
    """Writes the instructions of a tile, which compiled loops would not keep in registers: for each
    number of rows a loop over the depth, what two matrices have in common, that adds one product to
    each sum. A kind of tile says what the numbers are."""

    step = 1  # of the depth
    vector = FLOATS  # the sums of a register

    def __init__(self, builder: ir.IRBuilder, pointers: Sequence[Any], sizes: Sequence[Any]):
        """pointers: to the first elements of the arrays; sizes: as the kind of tile says."""
        self._builder, self._pointers, self._sizes = builder, pointers, sizes

    def write(self, count: Any) -> None:
        """Write the tile. count: the number of rows, known only when the code runs."""
        builder = self._builder
        done = builder.append_basic_block("done")
        chosen = builder.switch(count, done)
        for rows in range(1, TILE_ROWS + 1):
            begin = builder.append_basic_block(f"rows{rows}")
            chosen.add_case(WORD(rows), begin)
            builder.position_at_end(begin)
            for first in range(0, TILE_COLUMNS, VECTORS * VECTOR):
                columns = range(first, first + VECTORS * VECTOR, VECTOR)
                pairs = [(row, column) for row in range(rows) for column in columns]
                for (row, column), total in zip(pairs, self._sums(pairs), strict=True):
                    self._finish(row, column, total)
            builder.branch(done)
        builder.position_at_end(done)

    def _sums(self, pairs: Sequence[tuple[int, int]]) -> list[Any]:
        """A register of sums for each (row, first column)."""
        builder, before = self._builder, self._builder.block
        starts = [self._start(row) for row, _ in pairs]
        loop, after = builder.append_basic_block("depth"), builder.append_basic_block("sums")
        builder.branch(loop)
        builder.position_at_end(loop)
        depth, sums, added = builder.phi(WORD), [builder.phi(self.vector) for _ in pairs], []
        columns = {
            first: self._column(first, depth) for first in dict.fromkeys(c for _, c in pairs)
        }
        element = None
        for (row, first), total in zip(pairs, sums, strict=True):
            if first == pairs[0][1]:  # loaded next to its use, or the registers do not suffice
                element = self._row(row, depth)
            added.append(self._add(total, columns[first], element))
        following = builder.add(depth, WORD(self.step))
        for phi, first, later in [
            (depth, WORD(0), following),
            *zip(sums, starts, added, strict=True),
        ]:
            phi.add_incoming(first, before)
            phi.add_incoming(later, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, self._sizes[0]), loop, after)
        builder.position_at_end(after)
        return added

    @abstractmethod
    def _start(self, row: int) -> Any: ...

    @abstractmethod
    def _row(self, row: int, depth: Any) -> Any: ...

    @abstractmethod
    def _column(self, first: int, depth: Any) -> Any: ...

    @abstractmethod
    def _add(self, total: Any, column: Any, element: Any) -> Any: ...

    @abstractmethod
    def _finish(self, row: int, first: int, total: Any) -> None: ...

    def _at(self, array: int, kind: Any, row: Any, width: Any, column: Any) -> Any:
        """Where element row · width + column of an array is, as a pointer to `kind`."""
        builder = self._builder
        row, column = (WORD(part) if isinstance(part, int) else part for part in (row, column))
        index = builder.add(builder.mul(row, width), column)
        return builder.bitcast(builder.gep(self._pointers[array], [index]), kind.as_pointer())

    def _load(self, array: int, kind: Any, row: Any, width: Any, column: Any) -> Any:
        return self._builder.load(self._at(array, kind, row, width, column), align=1, typ=kind)

    def _call(self, instruction: str, *values: Any, made: Any = None) -> Any:
        """Vectors -> one of the kind `made`, or else of the first one's."""
        kind = ir.FunctionType(made or values[0].type, [value.type for value in values])
        return self._builder.call(
            cgutils.get_or_insert_function(self._builder.module, kind, instruction), values
        )

    def _broadcast(self, value: Any) -> Any:
        """A number -> a register of it."""
        builder, kind = self._builder, ir.VectorType(value.type, VECTOR)
        nothing = ir.Constant(kind, ir.Undefined)
        return builder.shuffle_vector(
            builder.insert_element(nothing, value, INT(0)),
            nothing,
            ir.Constant(INTS, [0] * VECTOR),
        )


class _FloatTile(Tile):
    """Arrays: rows, columns, what they make. Sizes: the depth, and what lies between two rows of
    each array.
    """

    def _start(self, row: int) -> Any:
        return ir.Constant(FLOATS, [0.0] * VECTOR)

    def _row(self, row: int, depth: Any) -> Any:
        return self._broadcast(self._load(0, FLOAT, row, self._sizes[1], depth))

    def _column(self, first: int, depth: Any) -> Any:
        return self._load(1, FLOATS, depth, self._sizes[2], first)

    def _add(self, total: Any, column: Any, element: Any) -> Any:
        return self._call(f"llvm.fma.v{VECTOR}f32", column, element, total)

    def _finish(self, row: int, first: int, total: Any) -> None:
        self._builder.store(total, self._at(2, FLOATS, row, self._sizes[3], first), align=1)


def tile_of(kind: type[Tile]) -> Any:
    """(arrays, sizes, rows) -> nothing: the product of up to TILE_ROWS rows and 32 columns, arrays
    and sizes tuples as the kind says.
    """

    @intrinsic
    def tile(context, arrays, sizes, rows):
        def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
            parts = cgutils.unpack_tuple(builder, values[0])
            pointers = [
                target.make_array(array)(target, builder, part).data
                for array, part in zip(signature.args[0], parts, strict=True)
            ]
            given = [*pointers, *cgutils.unpack_tuple(builder, values[1]), values[2]]
            builder.call(
                _function(kind, builder.module, [value.type for value in given], len(pointers)),
                given,
            )
            return target.get_dummy_value()

        return types.void(arrays, sizes, rows), generate

    return tile


def _function(
    kind: type[Tile], module: ir.Module, given: Sequence[Any], arrays: int
) -> ir.Function:
    """One for all that call it: compiled into each of them, the tiles would take four times as long
    to compile.
    """
    name = f"mneme.{kind.__name__}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), given), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("begin"))
    kind(builder, function.args[:arrays], function.args[arrays:-1]).write(function.args[-1])
    builder.ret_void()
    return function


float_tile = tile_of(_FloatTile)
