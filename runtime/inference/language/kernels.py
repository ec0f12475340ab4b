"""The heads in compiled loops: from what is known of words to trees, names and kinds.

Products take four rows of the weights at once, so that a sum is fetched and stored once for four
products. Trees are found by Eisner's algorithm (1996), names by Viterbi's.
"""

from __future__ import annotations

import numpy as np

from storage.indexes import FLOAT32, INT64, in_array, inline, kernel, out_array

NEVER = np.float32(-1e9)


@inline
def _product(x, weights, bias, out, positive):
    """x (rows, inputs) · weights (inputs, outputs) + bias -> out; no less than 0 where so asked."""
    inputs, outputs = weights.shape
    whole = inputs // 4 * 4
    for row in range(x.shape[0]):
        mine, into = x[row], out[row]
        for column in range(outputs):
            into[column] = bias[column]
        for first in range(0, whole, 4):
            a, b, c, d = mine[first], mine[first + 1], mine[first + 2], mine[first + 3]
            one, two = weights[first], weights[first + 1]
            three, four = weights[first + 2], weights[first + 3]
            for column in range(outputs):
                into[column] += (
                    a * one[column] + b * two[column] + c * three[column] + d * four[column]
                )
        for number in range(whole, inputs):
            for column in range(outputs):
                into[column] += mine[number] * weights[number, column]
        if positive:
            for column in range(outputs):
                into[column] = max(into[column], np.float32(0))


@kernel(
    *(in_array(FLOAT32, 2), in_array(INT64)),
    *(in_array(FLOAT32, 2), in_array(FLOAT32), in_array(FLOAT32, 3), in_array(FLOAT32, 2)),
    *(in_array(FLOAT32, 2), in_array(FLOAT32)),
    *(out_array(FLOAT32, 2), out_array(FLOAT32, 2)),
)
def score(x, edges, entry, entry_bias, near, near_bias, said, said_bias, hidden, scores):
    """x (w, inputs) of sentences that end at edges[1:] -> hidden (w, 192); scores (w, outputs)."""
    width = hidden.shape[1]
    _product(x, entry, entry_bias, hidden, True)
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
        _product(wide, near[layer], near_bias[layer], more, True)
        for word in range(x.shape[0]):
            for number in range(width):
                hidden[word, number] += more[word, number]
    _product(hidden, said, said_bias, scores, False)


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
    *(in_array(FLOAT32, 2), in_array(FLOAT32, 2), in_array(FLOAT32), in_array(FLOAT32, 2)),
    *(in_array(FLOAT32, 2), out_array(FLOAT32, 2), out_array(INT64)),
)
def find_tree(dependents, heads, root, weights, distances, arcs, tree):
    """One sentence's words as dependents and as heads (w, 96 each), and the root as a head -> arcs
    (w, 1 + w), the logarithms of how likely each head is, the root first; tree (w,), each word's
    head in the likeliest projective tree with one root, -1 for the root's.
    """
    words, width = dependents.shape
    reach = distances.shape[0] // 2
    turned = np.empty((words, width), np.float32)
    _product(dependents, weights[:width], weights[width], turned, False)
    for word in range(words):
        for head in range(1 + words):
            total = np.float32(0)
            for number in range(width):
                other = root[number] if head == 0 else heads[head - 1, number]
                total += turned[word, number] * other
            if head:
                far = distances[max(-reach, min(reach, head - 1 - word)) + reach]
                for number in range(width):
                    total += dependents[word, number] * far[number]
            arcs[word, head] = total
        _log_softmax(arcs[word])
    _eisner(arcs, tree)


@kernel(
    *(in_array(FLOAT32, 2), in_array(FLOAT32, 2), in_array(FLOAT32), in_array(FLOAT32, 3)),
    *(in_array(FLOAT32, 2), in_array(INT64), out_array(INT64), out_array(FLOAT32)),
)
def label_tree(dependents, heads, root, weights, arcs, tree, relations, certainties):
    """Words as dependents and as heads (w, 40 each), the root as a head, a tree and how likely its
    arcs are -> relations (w,), and how likely each arc and its relation are together (w,).
    """
    words, width = dependents.shape
    count = weights.shape[1]
    scores = np.empty(count, np.float32)
    for word in range(words):
        head = tree[word]
        other = root if head < 0 else heads[head]
        for relation in range(count):
            scores[relation] = 0
        for number in range(width + 1):
            factor = dependents[word, number] if number < width else np.float32(1)
            if factor == 0:
                continue
            for relation in range(count):
                mine = weights[number, relation]
                total = mine[width]
                for place in range(width):
                    total += mine[place] * other[place]
                scores[relation] += factor * total
        _log_softmax(scores)
        best = 0
        for relation in range(1, count):
            if scores[relation] > scores[best]:
                best = relation
        relations[word] = best
        certainties[word] = np.exp(arcs[word, head + 1] + scores[best])


@kernel(in_array(FLOAT32, 2), out_array(INT64), out_array(FLOAT32))
def find_spans(scores, labels, likely):
    """(w, 1 + 2 · kinds) scores of "outside", and of "begins" and "goes on" for each kind -> the
    likeliest labels (w,) in which a span goes on only after a word of its kind, and how likely each
    is.
    """
    words, count = scores.shape
    best = np.empty((words, count), np.float32)
    before = np.zeros((words, count), np.int64)
    logs = scores.copy()
    for word in range(words):
        _log_softmax(logs[word])
        top = 0
        if word:
            for label in range(1, count):
                if best[word - 1, label] > best[word - 1, top]:
                    top = label
        for label in range(count):
            goes_on = label > 0 and label % 2 == 0
            chosen = top
            if goes_on and word:
                same = best[word - 1, label] > best[word - 1, label - 1]
                chosen = label if same else label - 1
            earlier = best[word - 1, chosen] if word else np.float32(0)
            best[word, label] = logs[word, label] + (NEVER if goes_on and not word else earlier)
            before[word, label] = chosen
    label = 0
    for other in range(1, count):
        if best[words - 1, other] > best[words - 1, label]:
            label = other
    for word in range(words - 1, -1, -1):
        labels[word], likely[word] = label, np.exp(logs[word, label])
        label = before[word, label]
