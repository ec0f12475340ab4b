"""The compiled loops of a lexical search: what is stored taken apart, BM25 (Robertson and Zaragoza,
2009) of many documents at once, and the best of them.

Postings of several terms stand end to end, those of each at `ends`. Ordinals ascend, so a search
goes over them in windows: the scores and lengths of one fit into the processor's second cache,
whatever the account has.
"""

from __future__ import annotations

import numpy as np

from storage.indexes.kernels import (
    BOOL,
    FLOAT32,
    INT64,
    UINT16,
    UINT32,
    in_array,
    inline,
    kernel,
    out_array,
)
from storage.indexes.lexical.stored import (
    LENGTHS_PER_BLOCK,
    LENGTHS_SHIFT,
    OCCURRENCE_BITS,
    OCCURRENCES_SCORED_MAX,
    POSTINGS_SHIFT,
)
from storage.indexes.ordinals import lower_bound, place_among
from storage.indexes.top_k import offer

WINDOW_SHIFT = 15
# Scores whose highest is looked at before each: the processor compares so many at once.
LOOKED_AT = 64
# A window of which more is allowed is searched for high scores, which are then looked up among what
# is allowed; else the scores of what is allowed are looked up.
DENSE_SHARE = 8

_LENGTHS_MASK = LENGTHS_PER_BLOCK - 1
_WINDOW = 1 << WINDOW_SHIFT
_NOWHERE = 1 << 40  # further from every ordinal than a block is long


@kernel(in_array(UINT16), in_array(UINT32), in_array(INT64), out_array(UINT32), out_array(FLOAT32))
def unpack(packed, blocks, sizes, ordinals, occurrences):
    """Blocks end to end, `sizes` numbers each, -> ordinals, and how often the term occurs in
    each.
    """
    start = 0
    for block in range(blocks.shape[0]):
        base, end = blocks[block] << np.uint32(POSTINGS_SHIFT), start + sizes[block]
        for place in range(start, end):
            ordinals[place] = base + (packed[place] >> np.uint32(OCCURRENCE_BITS))
            occurrences[place] = np.float32(
                (packed[place] & np.uint32(OCCURRENCES_SCORED_MAX - 1)) + np.uint32(1)
            )
        start = end


@inline
def _entered(blocks, near, ordinal):
    """(which of the blocks has the ordinal, mostly the one after `near`, or −1; the first ordinal
    of such a block; how far from it this one is).
    """
    number = np.int64(ordinal) >> LENGTHS_SHIFT
    at = near + 1
    if at >= blocks.shape[0] or blocks[at] != number:
        at = place_among(blocks, number)
    return at, np.uint64(number << LENGTHS_SHIFT), np.uint64(np.int64(ordinal) & _LENGTHS_MASK)


@kernel(
    in_array(UINT32), in_array(FLOAT32), in_array(INT64), in_array(FLOAT32), FLOAT32, FLOAT32,
    in_array(UINT32), in_array(UINT16), in_array(UINT32), BOOL, INT64, out_array(UINT32),
    out_array(FLOAT32), result=INT64,
)  # fmt: skip
def best_scores(
    ordinals, occurrences, ends, weights, base, slope, blocks, lengths, members, all_of, k, best,
    highest,
):  # fmt: skip
    """Fill the last two (`offer`) with documents among which the k best by BM25 are; -> how many
    there are. Allowed are the members, which ascend, or with all_of each document. A term without a
    weight is left out.
    """
    highest[2 * k], best[2 * k] = -np.inf, 0
    totals = np.empty(_WINDOW, np.float32)
    nexts, count, member = np.empty(ends.shape[0], np.int64), 0, 0
    last = np.int64(0)  # ordinal of all postings
    for term in range(ends.shape[0]):
        nexts[term] = ends[term - 1] if term else 0
        if weights[term] == 0:
            nexts[term] = ends[term]
        elif nexts[term] < ends[term]:
            last = max(last, np.int64(ordinals[ends[term] - 1]))
    while True:
        window = np.int64(_NOWHERE)
        for term in range(ends.shape[0]):
            if nexts[term] < ends[term]:
                window = min(window, np.int64(ordinals[nexts[term]]) >> WINDOW_SHIFT)
        if window == _NOWHERE:
            break
        first = np.uint64(window << WINDOW_SHIFT)
        totals[: min(_WINDOW, last + 1 - np.int64(first))] = 0
        used = _add_scores(
            ordinals, occurrences, ends, weights, base, slope, blocks, lengths, nexts, first, totals
        )
        if all_of:
            count = _offer_high(totals, used, first, members, 0, 0, k, count, best, highest)
            continue
        member = lower_bound(members, member, np.int64(first))
        behind = lower_bound(members, member, np.int64(first + used))
        if behind - member == np.int64(used):  # all are allowed
            count = _offer_high(totals, used, first, members, 0, 0, k, count, best, highest)
        elif (behind - member) * DENSE_SHARE > np.int64(used):
            count = _offer_high(
                totals, used, first, members, member, behind, k, count, best, highest
            )
        else:
            for place in range(member, behind):
                total = totals[np.uint64(members[place]) - first]
                if total > 0:
                    count = offer(highest, best, count, k, total, members[place])
        member = behind
    return count


@inline
def _add_scores(
    ordinals, occurrences, ends, weights, base, slope, blocks, lengths, nexts, window, totals
):
    """Add BM25 to the totals of the window, and bring `nexts` behind it; -> how many of the totals
    count.
    """
    used = np.uint64(0)
    for term in range(ends.shape[0]):
        at, first = -1, np.uint64(_NOWHERE)
        posting = nexts[term]
        while posting < ends[term]:
            place = np.uint64(ordinals[posting]) - window
            if place >= np.uint64(_WINDOW):
                break
            low = np.uint64(ordinals[posting]) - first
            if low >= np.uint64(LENGTHS_PER_BLOCK):
                at, first, low = _entered(blocks, at, ordinals[posting])
            if at >= 0:
                length = np.float32(lengths[np.uint64(at << LENGTHS_SHIFT) + low])
                occurring = occurrences[posting]
                totals[place] += weights[term] * occurring / (occurring + base + slope * length)
                used = max(used, place + np.uint64(1))
            posting += 1
        nexts[term] = posting
    return used


@inline
def _offer_high(totals, used, window, members, member, behind, k, count, best, highest):
    """Offer the totals that may be among the k best; of `member` to `behind`, where there are any,
    those that are among them. -> how many there are now.
    """
    for start in range(np.int64(0), np.int64(used), LOOKED_AT):
        end = min(start + LOOKED_AT, np.int64(used))
        most = np.float32(0)
        for place in range(start, end):
            most = max(most, totals[place])
        if most == 0 or most < highest[2 * k]:
            continue
        for place in range(start, end):
            total = totals[place]
            if total == 0 or total < highest[2 * k]:
                continue
            ordinal = window + np.uint64(place)
            if behind > 0:
                step = 1  # since the one that was looked for before is mostly not far
                while member + step < behind and members[member + step] < ordinal:
                    member, step = member + step, 2 * step
                to = min(member + step + 1, behind)
                member = lower_bound(members[:to], member, np.int64(ordinal))
                if member == behind:
                    return count
                if members[member] != ordinal:
                    continue
            count = offer(highest, best, count, k, total, np.uint32(ordinal))
    return count


@kernel(
    in_array(UINT32), in_array(UINT32), out_array(BOOL), in_array(UINT32), in_array(INT64),
    out_array(INT64),
)  # fmt: skip
def count_members(blocks, members, held, ordinals, ends, found):
    """How many of the members are in each of the lists, which stand end to end. held: by place,
    all false.
    """
    at, first = -1, np.uint64(_NOWHERE)
    for i in range(members.shape[0]):
        low = np.uint64(members[i]) - first
        if low >= np.uint64(LENGTHS_PER_BLOCK):
            at, first, low = _entered(blocks, at, members[i])
        if at >= 0:
            held[np.uint64(at << LENGTHS_SHIFT) + low] = True
    start = 0
    for each in range(ends.shape[0]):
        for posting in range(start, ends[each]):
            low = np.uint64(ordinals[posting]) - first
            if low >= np.uint64(LENGTHS_PER_BLOCK):
                at, first, low = _entered(blocks, at, ordinals[posting])
            if at >= 0:
                found[each] += held[np.uint64(at << LENGTHS_SHIFT) + low]
        start = ends[each]


@kernel(in_array(UINT32), in_array(UINT16), in_array(UINT32), out_array(UINT16))
def lengths_at(blocks, lengths, ordinals, found):
    """The length of each document; 0 of one that is not there."""
    at, first = -1, np.uint64(_NOWHERE)
    for i in range(ordinals.shape[0]):
        low = np.uint64(ordinals[i]) - first
        if low >= np.uint64(LENGTHS_PER_BLOCK):
            at, first, low = _entered(blocks, at, ordinals[i])
        found[i] = lengths[np.uint64(at << LENGTHS_SHIFT) + low] if at >= 0 else 0
