"""Products of bytes, a tile at a time, by the instructions that the processor has for them.

AVX-512 VNNI and AVX-VNNI multiply unsigned bytes by signed ones: weights are the unsigned ones,
stored plus 128, and what that adds, 128 times the row's sum, is taken off where the sums begin.
DotProd multiplies signed ones: the weights' highest bit is turned. AVX2 adds pairs of products in
sixteen bits, which 127 · 127 twice does not fill: it multiplies the rows' magnitudes by weights
that have been given the rows' signs. AMX multiplies sixteen rows by sixteen columns at a time. The
sums are whole numbers, so what comes out is the same to the bit.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from runtime.inference.tiles import (
    FLOAT,
    FLOATS,
    INT,
    INTS,
    TILE_COLUMNS,
    TILE_ROWS,
    VECTOR,
    WORD,
    Tile,
    tile_of,
)
from storage.indexes import byte_products, write_fetch

ZERO_POINT = 128  # of the stored weights
HIGHEST_BITS = -0x7F7F7F80  # of four bytes
BYTES, SHORTS = (ir.VectorType(ir.IntType(8 * n), 4 * VECTOR // n) for n in (1, 2))
STEPS_AHEAD = 8  # of a tile, that its weights are asked for before they are needed

# A register of AMX is itself a matrix.
MATRIX_ROWS, MATRIX_BYTES = 16, 64
BYTE = ir.IntType(8)


class _ByteTile(Tile):
    """Arrays: codes, scales and starts of rows; weights, scales and bias of columns; what they
    make. Sizes: inputs, outputs.
    """

    step = 4
    vector = INTS

    def _start(self, row: Any) -> Any:
        return self._broadcast(self._load(2, INT, 0, WORD(0), row))

    def _row(self, row: int, depth: Any) -> Any:
        return self._broadcast(self._load(0, INT, row, self._sizes[0], depth))

    def _column(self, first: int, depth: Any) -> Any:
        ahead = self._builder.add(depth, WORD(STEPS_AHEAD * self.step))
        write_fetch(self._builder, self._at(3, INTS, ahead, WORD(TILE_COLUMNS), first * self.step))
        return self._load(3, INTS, depth, WORD(TILE_COLUMNS), first * self.step)

    def _add(self, total: Any, column: Any, element: Any) -> Any:
        return self._call(f"llvm.x86.avx512.vpdpbusd.{32 * VECTOR}", total, column, element)

    def _finish(self, row: Any, first: int, total: Any) -> None:
        builder = self._builder
        scale = builder.fmul(
            self._broadcast(self._load(1, FLOAT, 0, WORD(0), row)),
            self._load(4, FLOATS, 0, WORD(0), first),
        )
        value = builder.fadd(
            builder.fmul(builder.sitofp(total, FLOATS), scale),
            self._load(5, FLOATS, 0, WORD(0), first),
        )
        builder.store(value, self._at(6, FLOATS, row, self._sizes[1], first), align=1)


class _SignedTile(_ByteTile):
    """The same of signed weights: nothing has to be taken off."""

    def _start(self, row: Any) -> Any:
        return ir.Constant(INTS, [0] * VECTOR)

    def _column(self, first: int, depth: Any) -> Any:
        stored = super()._column(first, depth)
        return self._builder.xor(stored, ir.Constant(INTS, [HIGHEST_BITS] * VECTOR))

    def _add(self, total: Any, column: Any, element: Any) -> Any:
        signed = [self._builder.bitcast(each, BYTES) for each in (column, element)]
        return self._call("llvm.aarch64.neon.sdot.v4i32.v16i8", total, *signed)


class _PairsTile(_SignedTile):
    """The same by pairs, for AVX2."""

    def _row(self, row: int, depth: Any) -> Any:
        signed = self._builder.bitcast(super()._row(row, depth), BYTES)
        return signed, self._call(f"llvm.abs.v{4 * VECTOR}i8", signed, ir.IntType(1)(0))

    def _add(self, total: Any, column: Any, element: Any) -> Any:
        signed, magnitude = element
        given = self._call("llvm.x86.avx2.psign.b", self._builder.bitcast(column, BYTES), signed)
        pairs = self._call("llvm.x86.avx2.pmadd.ub.sw", magnitude, given, made=SHORTS)
        ones = ir.Constant(SHORTS, [1] * (2 * VECTOR))
        return self._builder.add(
            total, self._call("llvm.x86.avx2.pmadd.wd", pairs, ones, made=INTS)
        )


class _MatrixTile(_ByteTile):
    """The same by AMX: one or two registers of rows by two of columns, whose sums are four more,
    stored before they become floats. Codes of rows are read to whole registers, past those that
    count. `shape_matrices` comes before it.
    """

    step = MATRIX_BYTES

    def write(self, count: Any) -> None:
        builder = self._builder
        held = cgutils.alloca_once(builder, ir.ArrayType(INT, 2 * MATRIX_ROWS * TILE_COLUMNS))
        held.align = MATRIX_BYTES
        few, many, done = (builder.append_basic_block(name) for name in ("few", "many", "done"))
        builder.cbranch(builder.icmp_unsigned("<=", count, WORD(MATRIX_ROWS)), few, many)
        for block, registers in ((few, 1), (many, 2)):
            builder.position_at_end(block)
            self._multiply(held, registers)
            builder.branch(done)
        builder.position_at_end(done)
        with cgutils.for_range(builder, count, intp=WORD) as loop:
            for first in range(0, TILE_COLUMNS, VECTOR):
                place = builder.add(builder.mul(loop.index, WORD(TILE_COLUMNS)), WORD(first))
                sums = builder.bitcast(
                    builder.gep(held, [WORD(0), place], source_etype=held.allocated_type),
                    INTS.as_pointer(),
                )
                total = builder.add(builder.load(sums, align=1, typ=INTS), self._start(loop.index))
                self._finish(loop.index, first, total)

    def _multiply(self, held: Any, rows: int) -> None:
        """rows: how many registers of them."""
        builder, before = self._builder, self._builder.block
        pairs = [(row, column) for row in range(rows) for column in range(2)]
        for place in range(len(pairs)):
            _write_matrix(builder, "tilezero", place)
        loop, after = builder.append_basic_block("depth"), builder.append_basic_block("sums")
        builder.branch(loop)
        builder.position_at_end(loop)
        depth = builder.phi(WORD)
        for row in range(rows):
            codes = self._at(0, BYTE, row * MATRIX_ROWS, self._sizes[0], depth)
            _write_matrix(builder, "tileloadd64", 4 + row, codes, self._sizes[0])
        for column in range(2):
            weights = self._at(3, BYTE, depth, WORD(TILE_COLUMNS), column * MATRIX_BYTES)
            _write_matrix(builder, "tileloadd64", 6 + column, weights, WORD(4 * TILE_COLUMNS))
        for place, (row, column) in enumerate(pairs):
            _write_matrix(builder, "tdpbsud", place, 4 + row, 6 + column)
        following = builder.add(depth, WORD(self.step))
        depth.add_incoming(WORD(0), before)
        depth.add_incoming(following, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, self._sizes[0]), loop, after)
        builder.position_at_end(after)
        sums = builder.bitcast(held, BYTE.as_pointer())
        for place, (row, column) in enumerate(pairs):
            into = 4 * (row * MATRIX_ROWS * TILE_COLUMNS + column * MATRIX_ROWS)
            _write_matrix(
                builder,
                "tilestored64",
                place,
                builder.gep(sums, [WORD(into)]),
                WORD(4 * TILE_COLUMNS),
            )


def _write_matrix(builder: ir.IRBuilder, instruction: str, *given: Any) -> None:
    """given: numbers of registers, then values."""
    values = [BYTE(each) if isinstance(each, int) else each for each in given]
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(
        cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{instruction}"), values
    )


IN_MATRICES = byte_products() == "AMX"


def _shape_matrices(context: Any) -> Any:
    """() -> nothing: say how large this thread's matrices are, where the processor has them."""

    def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        if IN_MATRICES:
            # Intel's manual, "TILECFG": a palette, then bytes of a row and rows of each register.
            told = bytearray(64)
            told[0] = 1
            for register in range(8):
                told[16 + 2 * register] = MATRIX_BYTES
                told[48 + register] = MATRIX_ROWS
            said = cgutils.global_constant(
                builder, "mneme.matrices", cgutils.create_constant_array(BYTE, told)
            )
            _write_matrix(builder, "ldtilecfg", builder.bitcast(said, BYTE.as_pointer()))
        return target.get_dummy_value()

    return types.void(), generate


shape_matrices: Any = intrinsic(_shape_matrices)


def _leave_matrices(context: Any) -> Any:
    """() -> nothing: they need not be kept for this thread any more."""

    def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        if IN_MATRICES:
            _write_matrix(builder, "tilerelease")
        return target.get_dummy_value()

    return types.void(), generate


leave_matrices: Any = intrinsic(_leave_matrices)


_KINDS = {"AMX": _MatrixTile, "AVX2": _PairsTile, "DotProd": _SignedTile}
byte_tile = tile_of(_KINDS.get(byte_products() or "", _ByteTile))
# Of one call.
BYTE_TILE_ROWS = 2 * MATRIX_ROWS if IN_MATRICES else TILE_ROWS
# Of codes that may be read past the rows that count.
BYTE_TILE_SPARE_ROWS = MATRIX_ROWS - 1 if IN_MATRICES else 0
