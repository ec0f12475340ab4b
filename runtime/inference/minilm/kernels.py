"""all-MiniLM-L6-v2 in compiled loops, for processors whose instructions add up products of bytes
(storage/indexes/processor.py).

The same arithmetic as the graph of onnx.py, one scale per weight column and per token, in
about 0.6 of its time: products take more tokens at a time, there is no padding, and no operator
starts between two steps. Texts lie one after the other as rows of one matrix, a token to a row.

A tile (runtime/inference/tiles.py, byte_tiles.py) is the product of a few rows and 32 columns; its
sums stay in registers until they are floats.

File: `<directory>/all-MiniLM-L6-v2-packed-v<PACKED_VERSION>`, one MODEL, mapped into memory, so
that the processes of a machine share it. A product's weights are (outputs/32, inputs/4, 32, 4): in
the order in which tiles read them.

Threads share a run step by step: rows of tokens where each token is by itself, heads of texts where
they attend to each other. What comes out is the same to the bit, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from runtime.inference.crew import added, leave_core
from runtime.inference.local_embedder import Pause
from runtime.inference.minilm.byte_tiles import (
    BYTE_TILE_ROWS,
    BYTE_TILE_SPARE_ROWS,
    IN_MATRICES,
    ZERO_POINT,
    byte_tile,
    leave_matrices,
    shape_matrices,
)
from runtime.inference.minilm.weights import (
    HEADER_BYTES,
    HEADS,
    INNER_LAYERS,
    LAYERS,
    NORM_EPSILON,
    QMAX,
    VOCABULARY,
    WIDTH,
    quantised,
)
from runtime.inference.sums import fma, squares_of, total_of
from runtime.inference.tiles import TILE_COLUMNS, TILE_ROWS, float_tile
from runtime.limits import EMBEDDED_TOKENS_MAX
from storage.indexes import (
    FLOAT32,
    INT64,
    exact,
    in_array,
    kernel,
    out_array,
)

PACKED_VERSION = 1
INNER = 4 * WIDTH
HEAD_WIDTH = WIDTH // HEADS
THREAD_ROWS_MIN = 7  # fewer are not worth another thread
# What the inner layer makes of them fits the second cache, and all weights are gone over for each.
BLOCK_ROWS = 192 if IN_MATRICES else 112 // TILE_ROWS * TILE_ROWS
CACHE_LINE = 64  # bytes; what a row of a matrix is read from at once, where it begins with one
LEAST_BITS = np.float32(1e-30).view(np.int32)
WITHOUT_SIGN = np.int32(0x7FFFFFFF)
EXP_LEAST = -87.0  # below it the exponential is no normal float32
COUNTER_PLACES = 8  # of a counter's cache line
WAITING_LOOKS = 200  # at a counter, microseconds, until the processor is left to others in between

_NORM = [("gamma", "f4", (WIDTH,)), ("beta", "f4", (WIDTH,))]


def _dense(inputs: int, outputs: int) -> list[tuple]:
    return [
        ("codes", "u1", (inputs * outputs,)),
        ("scales", "f4", (outputs,)),
        ("bias", "f4", (outputs,)),
    ]


LAYER = np.dtype(
    [
        ("projected", _dense(WIDTH, 3 * WIDTH)),
        ("attended", _dense(WIDTH, WIDTH)),
        ("attended_norm", _NORM),
        ("inner", _dense(WIDTH, INNER)),
        ("outer", _dense(INNER, WIDTH)),
        ("outer_norm", _NORM),
    ]
)
MODEL = np.dtype(
    [
        ("token_embeddings", "i1", (VOCABULARY, WIDTH)),
        ("position_embeddings", "f4", (EMBEDDED_TOKENS_MAX, WIDTH)),
        ("norm", _NORM),
        ("layers", LAYER, (LAYERS,)),
        ("token_scales", "f4", (VOCABULARY,)),  # last: all before it are multiples of a cache line
    ]
)


class CompiledMiniLm:
    """The packed model and the threads that work on a run. Calls block, without the interpreter's
    lock.
    """

    def __init__(self, model: np.ndarray, threads: int, threads_max: int):
        """model: (1,) MODEL."""
        self._model = model
        self._threads = threads
        self.threads_max = threads_max
        self._crew = ThreadPoolExecutor(max(1, threads_max - 1), thread_name_prefix="embedder")

    @classmethod
    def open(cls, path: Path, threads: int, threads_max: int = 0) -> CompiledMiniLm:
        """Map the weights. path: a sound file as above; threads: of a run without a pause,
        no more than it has texts, and threads_max (or else as many) of one whose pause says how
        many.
        """
        for each in (_forward, _pool):  # now, and not while the first text waits
            each.compiled()
        return cls(
            np.memmap(path, MODEL, mode="r", offset=HEADER_BYTES, shape=(1,)).view(np.ndarray),
            threads,
            max(threads, threads_max),
        )

    def run(
        self,
        texts: Sequence[Sequence[int]],
        *,
        inner: bool = False,
        last: bool = True,
        pause: Pause | None = None,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """As Network.run."""
        kept, threads = len(INNER_LAYERS) * inner + last, min(self._threads, len(texts))
        depth = LAYERS if last else INNER_LAYERS[1]
        spans = [(0, depth)]
        if pause is not None:
            threads = pause.threads
            if pause.work is not None:
                spans = [(layer, layer + 1) for layer in range(depth)]
        edges = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in texts], out=edges[1:])
        tokens = np.concatenate([np.array(ids, np.int64) for ids in texts])
        threads = min(threads, -(-len(tokens) // THREAD_ROWS_MIN))
        layers = np.empty((kept, len(tokens), WIDTH), np.float32)
        projected = np.empty((len(tokens), 3 * WIDTH), np.float32)
        attended = np.empty((len(tokens), WIDTH), np.float32)
        parts = [
            (np.zeros((2 * (end - begin) + 1, 2 * COUNTER_PLACES), np.int64), threads, begin, end)
            for begin, end in spans
        ]
        given = self._model, tokens, edges, layers, projected, attended

        def help_out() -> None:
            for part in parts:
                _forward(*given, *part)

        for _ in range(threads - 1):
            self._crew.submit(help_out)
        for number, part in enumerate(parts):
            if number and pause is not None:
                pause()
            _forward(*given, *part)
        vectors = np.empty((len(texts), WIDTH if last else 0), np.float32)
        if last:
            _pool(layers[-1], edges, vectors)
        return vectors, [layers[:, edges[i] : edges[i + 1]] for i in range(len(texts))]


def packed(weights: Mapping[str, np.ndarray]) -> bytes:
    """The model's float32 tensors -> one MODEL."""
    model = np.zeros(1, MODEL)[0]
    codes, scales = quantised(weights["embeddings.word_embeddings.weight"].T, QMAX)
    model["token_embeddings"], model["token_scales"] = codes.T, scales
    # Single texts, never pairs: all of type 0.
    positions = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    model["position_embeddings"] = positions[:EMBEDDED_TOKENS_MAX]
    _pack_norm(model["norm"], weights, "embeddings.LayerNorm")
    for number, layer in enumerate(model["layers"]):
        prefix = f"encoder.layer.{number}."
        _pack_dense(
            layer["projected"],
            weights,
            *(f"{prefix}attention.self.{part}" for part in ("query", "key", "value")),
        )
        _pack_dense(layer["attended"], weights, prefix + "attention.output.dense")
        _pack_norm(layer["attended_norm"], weights, prefix + "attention.output.LayerNorm")
        _pack_dense(layer["inner"], weights, prefix + "intermediate.dense")
        _pack_dense(layer["outer"], weights, prefix + "output.dense")
        _pack_norm(layer["outer_norm"], weights, prefix + "output.LayerNorm")
    return model.tobytes()


def _pack_norm(norm: Any, weights: Mapping[str, np.ndarray], name: str) -> None:
    norm["gamma"], norm["beta"] = weights[name + ".weight"], weights[name + ".bias"]


def _pack_dense(dense: Any, weights: Mapping[str, np.ndarray], *names: str) -> None:
    """Several layers that read the same rows become one, their columns side by side."""
    table, scales = quantised(np.concatenate([weights[name + ".weight"] for name in names]).T, QMAX)
    inputs, outputs = table.shape
    tiles = (
        (table.astype(np.int16) + ZERO_POINT)
        .astype(np.uint8)
        .reshape(inputs // 4, 4, outputs // TILE_COLUMNS, TILE_COLUMNS)
    )
    dense["codes"] = tiles.transpose(2, 0, 3, 1).ravel()
    dense["scales"], dense["bias"] = (
        scales,
        np.concatenate([weights[name + ".bias"] for name in names]),
    )


@exact
def _arrays(dense):
    """Of the same types whatever their sizes, so that what takes them is compiled once."""
    return dense.codes[:], dense.scales[:], dense.bias[:]


@exact
def _magnitude(x):
    """The largest of |x|, never zero. Floats without a sign lie in the order of their bits, and
    loops over integers are compiled to take sixteen at a time, where those over floats take one.
    """
    bits, peak = x.view(np.int32), LEAST_BITS
    for i in range(x.shape[0]):
        peak = max(peak, np.int32(bits[i] & WITHOUT_SIGN))
    return np.int32(peak).view(np.float32)


@exact
def _product(x, dense, scratch, out):
    """(rows, inputs) · weights + bias -> out (rows, outputs), rows in bytes with one scale each."""
    codes, scales, starts = scratch
    weights, weight_scales, bias = dense
    rows, inputs = x.shape
    for row in range(rows):
        mine, into = x[row], codes[row * inputs : (row + 1) * inputs]
        peak = _magnitude(mine)
        step, total = np.float32(QMAX) / peak, np.int32(0)
        for i in range(inputs):
            code = np.int32(np.rint(mine[i] * step))
            into[i] = np.int8(code)
            total += code
        scales[row], starts[row] = peak * np.float32(1 / QMAX), -ZERO_POINT * total
    outputs, groups = out.shape[1], (rows + BYTE_TILE_ROWS - 1) // BYTE_TILE_ROWS
    shape_matrices()
    for column in range(0, outputs, TILE_COLUMNS):
        row = 0
        for group in range(groups, 0, -1):
            # As many in each, or where tiles are of whole matrices, as many as there may be.
            most = BYTE_TILE_ROWS if IN_MATRICES else (rows - row + group - 1) // group
            count = min(most, rows - row)
            mine = codes[row * inputs :], scales[row:], starts[row:]
            columns = weights[column * inputs :], weight_scales[column:], bias[column:]
            byte_tile((*mine, *columns, out[row:, column:]), (inputs, outputs), count)
            row += count
    leave_matrices()


@exact
def _add_and_normalise(added, norm, x):
    """x = LayerNorm(x + added), row by row (Ba et al., 2016)."""
    gamma, beta = norm.gamma, norm.beta
    for row in range(x.shape[0]):
        mine, more = x[row], added[row]
        for i in range(WIDTH):
            mine[i] += more[i]
        mean = total_of(mine, WIDTH) / np.float32(WIDTH)
        for i in range(WIDTH):
            mine[i] -= mean
        variance = squares_of(mine, WIDTH) / np.float32(WIDTH)
        scale = np.float32(1) / np.sqrt(variance + np.float32(NORM_EPSILON))
        for i in range(WIDTH):
            mine[i] = fma(mine[i] * scale, gamma[i], beta[i])


@exact
def _exp(x):
    """e to the x ≤ 0, to a relative 1e-6: 2 to the whole part by writing the exponent's bits, a
    Taylor polynomial for the rest.
    """
    x = max(x, np.float32(EXP_LEAST))
    whole = np.floor(fma(x, np.float32(1 / np.log(2)), np.float32(0.5)))
    rest = fma(whole, np.float32(-np.log(2)), x)
    power = np.float32(1 / 720)
    power = fma(power, rest, np.float32(1 / 120))
    power = fma(power, rest, np.float32(1 / 24))
    power = fma(power, rest, np.float32(1 / 6))
    power = fma(power, rest, np.float32(0.5))
    power = fma(fma(power, rest, np.float32(1)), rest, np.float32(1))
    return power * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@exact
def gelu(x):
    """x · Φ(x) in place, the error function by Abramowitz and Stegun 7.1.26 (within 1.5e-7)."""
    for row in range(x.shape[0]):
        mine = x[row]
        for i in range(INNER):
            z = abs(mine[i]) * np.float32(np.sqrt(0.5))
            t = np.float32(1) / fma(np.float32(0.3275911), z, np.float32(1))
            tail = fma(np.float32(1.061405429), t, np.float32(-1.453152027))
            tail = fma(tail, t, np.float32(1.421413741))
            tail = fma(tail, t, np.float32(-0.284496736))
            tail = fma(tail, t, np.float32(0.254829592)) * t * _exp(-z * z) * np.float32(0.5)
            mine[i] *= tail if mine[i] < 0 else np.float32(1) - tail


@exact
def _attend(projected, attended, first_head, end_head):
    """One text: (t, 3 · 384) queries, keys and values -> these heads' part of (t, 384), head by
    head (Vaswani et al., 2017).
    """
    tokens = projected.shape[0]
    width = (tokens + TILE_COLUMNS - 1) // TILE_COLUMNS * TILE_COLUMNS
    keys, shares = (
        np.zeros((HEAD_WIDTH, width), np.float32),
        np.empty((TILE_ROWS, width), np.float32),
    )
    scale = np.float32(1 / np.sqrt(HEAD_WIDTH))
    for first in range(first_head * HEAD_WIDTH, end_head * HEAD_WIDTH, HEAD_WIDTH):
        for i in range(HEAD_WIDTH):
            for token in range(tokens):
                keys[i, token] = projected[token, WIDTH + first + i] * scale
        for token in range(0, tokens, TILE_ROWS):
            count = min(TILE_ROWS, tokens - token)
            for other in range(0, width, TILE_COLUMNS):
                compared = projected[token:, first:], keys[:, other:], shares[:, other:]
                float_tile(compared, (HEAD_WIDTH, 3 * WIDTH, width, width), count)
            for row in range(count):
                softmax(shares[row], tokens)
            summed = shares, projected[:, 2 * WIDTH + first :], attended[token:, first:]
            float_tile(summed, (tokens, width, 3 * WIDTH, WIDTH), count)


@exact
def softmax(scores, count):
    """Softmax of the first `count` scores in place; the rest become 0. scores (n,), n a multiple of
    SUMMED.
    """
    # Four at a time, or each would wait for the one before.
    a = b = c = d = scores[0]
    for j in range(count % 4):
        a = max(a, scores[j])
    for j in range(count % 4, count, 4):
        a, b = max(a, scores[j]), max(b, scores[j + 1])
        c, d = max(c, scores[j + 2]), max(d, scores[j + 3])
    peak = max(max(a, b), max(c, d))
    for j in range(count):
        scores[j] = _exp(scores[j] - peak)
    scores[count:] = 0
    share = np.float32(1) / total_of(scores, scores.shape[0])
    for j in range(count):
        scores[j] *= share


@exact
def _look_up(model, tokens, edges, hidden, first, end):
    """The sum of token, position and type embeddings of some rows, normalised."""
    hidden[first:end] = 0
    summed = np.empty((1, WIDTH), np.float32)
    text = 0
    for row in range(first, end):
        while row >= edges[text + 1]:
            text += 1
        token, scale, position = (
            model.token_embeddings[tokens[row]],
            model.token_scales[tokens[row]],
            model.position_embeddings[row - edges[text]],
        )
        for i in range(WIDTH):
            summed[0, i] = fma(np.float32(token[i]), scale, position[i])
        _add_and_normalise(summed, model.norm, hidden[row : row + 1])


@exact
def _take(step):
    """The next part of a step that no thread has taken; past its parts where none is left."""
    return added(step, 0, 1)


@exact
def _finish(step):
    """A part that was taken is done."""
    added(step, COUNTER_PLACES, 1)


@exact
def _wait(step, parts):
    """Until all parts of a step are done. Nobody is waited for who has taken none."""
    looks = 0
    while added(step, COUNTER_PLACES, 0) < parts:
        looks += 1
        if looks > WAITING_LOOKS:
            leave_core()


@exact
def _finish_layer(layer, scratch, wide, dense, attended, x):
    """What follows attention, of some rows: x (rows, 384) becomes the layer's."""
    count = x.shape[0]
    _product(attended, _arrays(layer.attended), scratch, dense[:count])
    _add_and_normalise(dense[:count], layer.attended_norm, x)
    _product(x, _arrays(layer.inner), scratch, wide[:count])
    gelu(wide[:count])
    _product(wide[:count], _arrays(layer.outer), scratch, dense[:count])
    _add_and_normalise(dense[:count], layer.outer_norm, x)


@kernel(
    in_array(MODEL),
    in_array(INT64),
    in_array(INT64),
    out_array(FLOAT32, 3),
    out_array(FLOAT32, 2),
    out_array(FLOAT32, 2),
    out_array(INT64, 2),
    INT64,
    INT64,
    INT64,
    reorders=False,
)
def _forward(model, tokens, edges, layers, projected, attended, crew, threads, begin, end):
    """tokens (t,) of texts that end at edges[1:] -> layers (1 to 3, t, 384), the last layer, those
    of INNER_LAYERS, or these and the last.

    The model's layers from `begin` to `end`, exclusive; what they make of those before is in the
    last of `layers`. projected (t, 1152) and attended (t, 384) are room to work in.

    So many threads may be at the same run, with the same counters of each step's parts, those taken
    and those done: crew (2 · (end - begin) + 1, 2 · COUNTER_PLACES), zero before it. Each takes
    parts until none is left, so a thread that comes late, or never, leaves them to the others; it
    returns when the run is done.
    """
    rows, hidden = tokens.shape[0], layers[layers.shape[0] - 1]
    texts = edges.shape[0] - 1
    # As many parts for each thread, of rows as of texts.
    each = (rows + BLOCK_ROWS * threads - 1) // (BLOCK_ROWS * threads)
    block = (rows + each * threads - 1) // (each * threads)
    blocks = (rows + block - 1) // block
    heads = HEADS if texts >= 2 * threads else (HEADS + threads - 1) // threads
    groups = (HEADS + heads - 1) // heads
    wide, dense = np.empty((block, INNER), np.float32), np.empty((block, WIDTH), np.float32)
    codes = np.empty((block + BYTE_TILE_SPARE_ROWS) * INNER + CACHE_LINE, np.int8)
    scratch = (
        codes[-codes.ctypes.data % CACHE_LINE :],
        np.empty(block, np.float32),
        np.empty(block, np.int32),
    )
    for number in range(begin, end + 1):
        # The end of the layer before and the beginning of this one, by rows.
        step = crew[2 * (number - begin)]
        part = _take(step)
        while part < blocks:
            first, last = part * block, min(rows, (part + 1) * block)
            x = hidden[first:last]
            if number > begin:
                before = model[0].layers[number - 1]
                _finish_layer(before, scratch, wide, dense, attended[first:last], x)
                for kept in range(layers.shape[0] - 1):
                    if number == INNER_LAYERS[kept]:
                        layers[kept, first:last] = x
            elif begin == 0:
                _look_up(model[0], tokens, edges, hidden, first, last)
            if number < end:
                layer = model[0].layers[number]
                _product(x, _arrays(layer.projected), scratch, projected[first:last])
            _finish(step)
            part = _take(step)
        _wait(step, blocks)
        if number == end:
            break
        step = crew[2 * (number - begin) + 1]
        part = _take(step)
        while part < texts * groups:
            first, last = edges[part // groups], edges[part // groups + 1]
            head = part % groups * heads
            mine = projected[first:last], attended[first:last]
            _attend(*mine, head, min(HEADS, head + heads))
            _finish(step)
            part = _take(step)
        _wait(step, texts * groups)


@kernel(in_array(FLOAT32, 2), in_array(INT64), out_array(FLOAT32, 2), reorders=False, brief=True)
def _pool(hidden, edges, vectors):
    """The last layer (t, 384) of texts that end at edges[1:] -> (n, 384): the mean of a text's
    tokens divided by its length, which is their sum divided by its own.
    """
    for text in range(edges.shape[0] - 1):
        vector = vectors[text]
        vector[:] = 0
        for row in range(edges[text], edges[text + 1]):
            mine = hidden[row]
            for i in range(WIDTH):
                vector[i] += mine[i]
        length = np.sqrt(squares_of(vector, WIDTH))
        for i in range(WIDTH):
            vector[i] /= length
