"""The heads in compiled loops: from what is known of words to trees, names and kinds.

The large products go by tiles (runtime/inference/tiles.py), their weights in panels of 32 columns,
in the order in which tiles read them. Trees are found by Eisner's algorithm (1996), names by
Viterbi's.
"""

from __future__ import annotations

import numpy as np

from runtime.inference.tiles import TILE_COLUMNS, TILE_ROWS, float_tile
from storage.indexes import FLOAT32, INT64, in_array, inline, kernel, out_array

NEVER = np.float32(-1e9)


@inline
def _tiled_product(x, weights, bias, out, positive):
    """x (rows, inputs) · weights (outputs / 32, inputs, 32) + bias -> out; no less than 0 where so
    asked.
    """
    rows, inputs = x.shape
    groups = (rows + TILE_ROWS - 1) // TILE_ROWS
    for panel in range(weights.shape[0]):
        row = 0
        for group in range(groups, 0, -1):
            count = (rows - row + group - 1) // group
            into = out[row:, panel * TILE_COLUMNS :]
            sizes = inputs, inputs, TILE_COLUMNS, out.shape[1]
            float_tile((x[row:], weights[panel], into), sizes, count)
            row += count
    for row in range(rows):
        into = out[row]
        for column in range(out.shape[1]):
            into[column] += bias[column]
            if positive:
                into[column] = max(into[column], np.float32(0))


@inline
def _product(x, weights, bias, out):
    """x (rows, inputs) · weights (inputs, outputs) + bias -> out."""
    inputs, outputs = weights.shape
    for row in range(x.shape[0]):
        into = out[row]
        for column in range(outputs):
            into[column] = bias[column]
        for number in range(inputs):
            for column in range(outputs):
                into[column] += x[row, number] * weights[number, column]


@kernel(
    *(in_array(FLOAT32, 2), in_array(INT64)),
    *(in_array(FLOAT32, 3), in_array(FLOAT32), in_array(FLOAT32, 4), in_array(FLOAT32, 2)),
    *(in_array(FLOAT32, 3), in_array(FLOAT32)),
    *(out_array(FLOAT32, 2), out_array(FLOAT32, 2)),
)
def score(x, edges, entry, entry_bias, near, near_bias, said, said_bias, hidden, scores):
    """x (w, inputs) of sentences that end at edges[1:] -> hidden (w, 192); scores (w, outputs),
    filled up to whole panels.
    """
    width = hidden.shape[1]
    _tiled_product(x, entry, entry_bias, hidden, True)
    wide, more = np.empty((x.shape[0], 3 * width), np.float32), np.empty_like(hidden)
    for layer in range(near.shape[0]):
        wide[:] = 0
        for sentence in range(edges.shape[0] - 1):
            for word in range(edges[sentence], edges[sentence + 1]):
                if word > edges[sentence]:
                    wide[word, :width] = hidden[word - 1]
                wide[word, width : 2 * width] = hidden[word]
                if word + 1 < edges[sentence + 1]:
                    wide[word, 2 * width :] = hidden[word + 1]
        _tiled_product(wide, near[layer], near_bias[layer], more, True)
        for word in range(x.shape[0]):
            for number in range(width):
                hidden[word, number] += more[word, number]
    _tiled_product(hidden, said, said_bias, scores, False)


@inline
def _log_softmax(scores):
    peak = scores[0]
    for number in range(scores.shape[0]):
        peak = max(peak, scores[number])
    total = np.float32(0)
    for number in range(scores.shape[0]):
        total += np.exp(scores[number] - peak)
    less = peak + np.log(total)
    for number in range(scores.shape[0]):
        scores[number] -= less


@inline
def _eisner(arcs, tree):
    words = arcs.shape[0]
    # [first, last, 0]: the head is the last word; [.., 1]: the first.
    whole = np.zeros((words, words, 2), np.float32)
    open_ = np.zeros((words, words, 2), np.float32)
    whole_at = np.zeros((words, words, 2), np.int64)
    open_at = np.zeros((words, words), np.int64)
    for length in range(1, words):
        for first in range(words - length):
            last = first + length
            best, at = NEVER * words, first
            for split in range(first, last):
                value = whole[first, split, 1] + whole[split + 1, last, 0]
                if value > best:
                    best, at = value, split
            open_at[first, last] = at
            open_[first, last, 0] = best + arcs[first, 1 + last]
            open_[first, last, 1] = best + arcs[last, 1 + first]
            best, at = NEVER * words, first
            for split in range(first, last):
                value = whole[first, split, 0] + open_[split, last, 0]
                if value > best:
                    best, at = value, split
            whole[first, last, 0], whole_at[first, last, 0] = best, at
            best, at = NEVER * words, last
            for split in range(first + 1, last + 1):
                value = open_[first, split, 1] + whole[split, last, 1]
                if value > best:
                    best, at = value, split
            whole[first, last, 1], whole_at[first, last, 1] = best, at
    best, root = NEVER * words, 0
    for word in range(words):
        value = arcs[word, 0] + whole[0, word, 0] + whole[word, words - 1, 1]
        if value > best:
            best, root = value, word
    tree[root] = -1
    waiting = np.empty((4 * words + 4, 3), np.int64)
    waiting[0], waiting[1] = (0, root, 0), (root, words - 1, 1)
    count = 2
    while count:
        count -= 1
        first, last, side = waiting[count]
        if first == last:
            continue
        split = whole_at[first, last, side]
        left, right = (split, last) if side == 0 else (first, split)
        if side == 0:
            tree[left] = right
            waiting[count] = (first, split, 0)
        else:
            tree[right] = left
            waiting[count] = (split, last, 1)
        middle = open_at[left, right]
        waiting[count + 1], waiting[count + 2] = (left, middle, 1), (middle + 1, right, 0)
        count += 3


@kernel(
    *(in_array(FLOAT32, 2), in_array(FLOAT32, 2), in_array(INT64)),
    *(in_array(FLOAT32), in_array(FLOAT32, 2), in_array(FLOAT32, 2)),
    *(out_array(INT64), out_array(FLOAT32)),
)
def find_trees(dependents, heads, edges, root, weights, distances, tree, likely):
    """Words of sentences that end at edges[1:] as dependents and as heads (w, 96 each), and the
    root as a head -> tree (w,), each word's head in its sentence in the likeliest projective tree
    with one root, -1 for the root's; and the logarithm of how likely that is (w,).
    """
    width = dependents.shape[1]
    reach = distances.shape[0] // 2
    turned = np.empty(dependents.shape, np.float32)
    _product(dependents, weights[:width], weights[width], turned)
    for sentence in range(edges.shape[0] - 1):
        first, last = edges[sentence], edges[sentence + 1]
        arcs = np.empty((last - first, 1 + last - first), np.float32)
        for word in range(first, last):
            for head in range(1 + last - first):
                total = np.float32(0)
                if head == 0:
                    for number in range(width):
                        total += turned[word, number] * root[number]
                else:
                    away = first + head - 1 - word
                    far = distances[max(-reach, min(reach, away)) + reach]
                    other = heads[first + head - 1]
                    for number in range(width):
                        total += turned[word, number] * other[number]
                        total += dependents[word, number] * far[number]
                arcs[word - first, head] = total
            _log_softmax(arcs[word - first])
        _eisner(arcs, tree[first:last])
        for word in range(first, last):
            likely[word] = arcs[word - first, tree[word] + 1]


@kernel(
    *(in_array(FLOAT32, 2), in_array(FLOAT32, 2), in_array(INT64), in_array(INT64)),
    *(in_array(FLOAT32), in_array(FLOAT32, 3), in_array(FLOAT32)),
    *(in_array(FLOAT32), out_array(INT64), out_array(FLOAT32)),
)
def label_trees(
    dependents, heads, edges, tree, root, weights, bias, likely, relations, certainties
):
    """Words of sentences that end at edges[1:] as dependents and as heads (w, 40 each), their
    heads, the root as a head, and how likely the arcs are -> relations (w,), and how likely each
    arc and its relation are together (w,).

    weights, bias  (panels, 41 · 41, 32) and (panels · 32,): of a relation and of each pair of a
                   dependent's and a head's number, one more of both being 1; no relation has the
                   bias NEVER
    """
    words, width = dependents.shape
    pairs = np.empty((words, (width + 1) * (width + 1)), np.float32)
    for sentence in range(edges.shape[0] - 1):
        for word in range(edges[sentence], edges[sentence + 1]):
            head, mine = tree[word], pairs[word]
            other = root if head < 0 else heads[edges[sentence] + head]
            for number in range(width + 1):
                factor = dependents[word, number] if number < width else np.float32(1)
                first = number * (width + 1)
                for place in range(width):
                    mine[first + place] = factor * other[place]
                mine[first + width] = factor
    scores = np.empty((words, bias.shape[0]), np.float32)
    _tiled_product(pairs, weights, bias, scores, False)
    for word in range(words):
        mine = scores[word]
        _log_softmax(mine)
        best = 0
        for relation in range(1, mine.shape[0]):
            if mine[relation] > mine[best]:
                best = relation
        relations[word] = best
        certainties[word] = np.exp(likely[word] + mine[best])


@kernel(in_array(FLOAT32, 2), in_array(INT64), out_array(INT64), out_array(FLOAT32))
def find_spans(scores, edges, labels, likely):
    """(w, 1 + 2 · kinds) scores of "outside", and of "begins" and "goes on" for each kind, of words
    of sentences that end at edges[1:] -> the likeliest labels (w,) in which a span goes on only
    after a word of its kind, and how likely each is.
    """
    words, count = scores.shape
    best = np.empty((words, count), np.float32)
    before = np.zeros((words, count), np.int64)
    logs = scores.copy()
    for sentence in range(edges.shape[0] - 1):
        first, last = edges[sentence], edges[sentence + 1]
        for word in range(first, last):
            _log_softmax(logs[word])
            top = 0
            if word > first:
                for label in range(1, count):
                    if best[word - 1, label] > best[word - 1, top]:
                        top = label
            for label in range(count):
                goes_on = label > 0 and label % 2 == 0
                chosen = top
                if goes_on and word > first:
                    same = best[word - 1, label] > best[word - 1, label - 1]
                    chosen = label if same else label - 1
                earlier = best[word - 1, chosen] if word > first else np.float32(0)
                best[word, label] = logs[word, label] + (
                    NEVER if goes_on and word == first else earlier
                )
                before[word, label] = chosen
        label = 0
        for other in range(1, count):
            if best[last - 1, other] > best[last - 1, label]:
                label = other
        for word in range(last - 1, first - 1, -1):
            labels[word], likely[word] = label, np.exp(logs[word, label])
            label = before[word, label]
