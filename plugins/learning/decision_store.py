"""Decision records as they are stored, and the sums that are kept over them.

A record is written once, with the decision: what could be chosen, with which probability, what was
chosen. Outcomes are appended beside it; of each metric the latest counts, and what they make
together (`reward`) is written back to the record.

A *cell* holds the sums over the decisions of one policy, end user (or all), action and collection.
A decision and an outcome bring the cells of their candidates up to date in their own transaction,
so insights read a few rows however many decisions there are.

Invariant: the cells of a policy equal what a walk over its records would sum up (a test does the
walk).

    receipts         (ordinal,)                          -> DecisionRecord
    receipt_details  (ordinal,)                          -> DetailsRow     read with one decision
    receipt_ids      (decision id,)                      -> ordinal, 8 bytes big endian
    observations     (ordinal, number)                   -> ObservationRow
    policies         (policy key,)                       -> PolicyRow
    policy_names     (place,)                            -> PolicyNameRow   by their first decisions
    policy_cells     (policy key, user, action, number)  -> CellRow
    receipt_fields   bitmaps of ordinals: policy, collection, user, resolved
    receipt_vectors  one vector of the context, where it has words

Policy, user and action stand in keys as 16-byte digests, b"" for all users.
`number` is a collection's number, NOWHERE for decisions that belong to none. What carries a dropped
number is not there any more, whether or not it has been swept.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from pyroaring import BitMap

from plugins.collections import Sweep, dropped_numbers, is_dropped, require_collection
from plugins.learning.limits import DECISIONS_SWEPT_PER_STEP
from plugins.learning.statistics import Rewards, Weighted
from runtime.api.context import ReadContext, WriteContext
from runtime.errors import NotFound
from storage.indexes import BitmapIndex, VectorIndex
from storage.store import Table

NOWHERE = -1
FOLDS = 5
WEIGHT_CAP = 10.0  # of the clipped estimate
DIGEST_BYTES = 16
SUCCESS, REWARD = "success", "reward"
DEFAULT_RANGES = {SUCCESS: (0.0, 1.0)}
DEFAULT_RANGE = (-1.0, 1.0)


class DecisionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """actions and probabilities are aligned; a probability of −1 is unknown. chosen, baseline:
    places in actions, −1 for none.

    metrics: the latest value of each; reward: what they make together, None while there is none.
    low, high: the declared range, None as long as only the kind of the outcome can tell it.
    """

    id: str
    policy_key: str
    number: int
    created_at: int
    mode: str
    actions: list[str]
    probabilities: list[float]
    chosen: int
    recommended: int
    baseline: int = -1
    used_baseline: bool = False
    source: str = "server"
    user_id: str | None = None
    low: float | None = None
    high: float | None = None
    metrics: dict[str, float] = {}
    reward: float | None = None
    status: str = "pending"
    revision: int = 0
    observations: int = 0

    @property
    def propensity(self) -> float | None:
        chance = self.probabilities[self.chosen]
        return None if self.source == "unknown" or chance <= 0 else chance

    @property
    def outcome(self) -> float:
        """The reward of a decision that has one. LookupError for another."""
        if self.reward is None:
            raise LookupError(f"decision {self.id} has no reward")
        return self.reward

    @property
    def bounds(self) -> tuple[float, float]:
        """The reward range; a default one where none was declared."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        return DEFAULT_RANGES[SUCCESS] if set(self.metrics) == {SUCCESS} else DEFAULT_RANGE


class DetailsRow(msgspec.Struct, omit_defaults=True):
    context: dict[str, Any]
    candidates: list[dict[str, Any]]
    reason: str
    version: int
    collection_id: str | None = None
    reward_range: list[float] | None = None
    metric_weights: dict[str, float] | None = None


class ObservationRow(msgspec.Struct, omit_defaults=True):
    """batch: id of the first observation of the same report; key: digest of the caller's
    idempotency key.
    """

    id: str
    batch: str
    metric_key: str
    value: float
    at: int
    is_final: bool = True
    confidence: float | None = None
    source: str | None = None
    corrects: str | None = None
    key: bytes = b""


class PolicyRow(msgspec.Struct):
    """place: where policy_names has its key; -1 for one of an older release, until its next
    decision or outcome.
    """

    created_at: int
    revision: int = 0
    place: int = -1


class PolicyNameRow(msgspec.Struct):
    policy_key: str


class CellRow(msgspec.Struct):
    """count: decisions that took the action; outcomes: those of them with a reward, whose sums
    follow.
    """

    action_key: str
    low: float
    high: float
    count: int = 0
    outcomes: int = 0
    total: float = 0.0
    squares: float = 0.0
    folds: list[list[float]] = []

    def has_outcomes(self) -> bool:
        """Whether any decision that offered the action has one."""
        return self.outcomes > 0 or any(fold[0] for fold in self.folds)


DECISION_RECORDS: Table[DecisionRecord] = Table(
    "receipts",
    key=("ordinal",),
    row=DecisionRecord,
    doc="decisions: what could be chosen, and what was",
)
DECISION_DETAILS: Table[DetailsRow] = Table(
    "receipt_details", key=("ordinal",), row=DetailsRow, doc="context and candidates of a decision"
)
DECISION_IDS: Table[bytes] = Table(
    "receipt_ids", key=("decision_id",), row=bytes, doc="decision id to ordinal, 8 bytes big endian"
)
OBSERVATIONS: Table[ObservationRow] = Table(
    "observations", key=("ordinal", "number"), row=ObservationRow, doc="reported outcomes"
)
POLICIES: Table[PolicyRow] = Table(
    "policies", key=("policy",), row=PolicyRow, doc="policies and how often their evidence changed"
)
POLICY_NAMES: Table[PolicyNameRow] = Table(
    "policy_names", key=("place",), row=PolicyNameRow, doc="keys of the policies, to list them"
)
POLICY_CELLS: Table[CellRow] = Table(
    "policy_cells",
    key=("policy", "user", "action", "number"),
    row=CellRow,
    doc="sums over the decisions of a policy",
)
DECISION_FIELDS = BitmapIndex("receipt_fields", fields=("policy", "collection", "user", "resolved"))
DECISION_VECTORS = VectorIndex("receipt_vectors")
TABLES: tuple[Table, ...] = (
    DECISION_RECORDS,
    DECISION_DETAILS,
    DECISION_IDS,
    OBSERVATIONS,
    POLICIES,
    POLICY_NAMES,
    POLICY_CELLS,
)
INDEXES = (DECISION_FIELDS, DECISION_VECTORS)

# --- reading --------------------------------------------------------------------------------------


def find_record(ctx: ReadContext, decision_id: str) -> tuple[int, DecisionRecord]:
    """Find a decision; -> (ordinal, record). NotFound when there is none, PermissionDenied for
    another account's.
    """
    missing = NotFound("There is no decision with this id.")
    raw = ctx[DECISION_IDS].get(ctx.check_id("dec", decision_id, missing))
    ordinal = -1 if raw is None else int.from_bytes(raw, "big")
    row = None if raw is None else ctx[DECISION_RECORDS].get(ordinal)
    if row is None or is_dropped(ctx, row.number):
        raise missing
    return ordinal, row


def find_policy(ctx: ReadContext, policy_key: str) -> PolicyRow | None:
    """The policy of this name; None before the first decision under it."""
    return ctx[POLICIES].get(digest(ctx, "policy", policy_key))


def get_policy(ctx: ReadContext, policy_key: str) -> PolicyRow:
    """NotFound unless a decision was made under it."""
    row = find_policy(ctx, policy_key)
    if row is None:
        raise NotFound("There is no policy with this key: it begins with its first decision.")
    return row


def number_of(ctx: ReadContext, collection_id: str | None) -> int:
    """The collection's number; NOWHERE for None. CollectionNotFound or PermissionDenied for one
    that is not the caller's.
    """
    return NOWHERE if collection_id is None else require_collection(ctx, collection_id).number


def records_of(
    ctx: ReadContext,
    policy_key: str | None,
    *,
    number: int | None,
    user_id: str | None,
    resolved: bool = False,
) -> BitMap:
    """Ordinals of the decisions under a policy (None: all that have outcomes), of one collection
    and user where these are given.
    """
    fields = ctx.index(DECISION_FIELDS)
    found = fields.of("resolved", 1) if policy_key is None else fields.of("policy", policy_key)
    if resolved:
        found &= fields.of("resolved", 1)
    if number is not None:
        found &= fields.of("collection", number)
    if user_id is not None:
        found &= fields.of("user", user_id)
    gone = dropped_numbers(ctx)
    return found - fields.any_of("collection", gone) if gone else found


def newest(ctx: ReadContext, ordinals: BitMap, count: int) -> list[tuple[int, DecisionRecord]]:
    """The `count` newest of these decisions, oldest first."""
    chosen = ordinals[max(0, len(ordinals) - count) :]
    rows = ctx[DECISION_RECORDS].get_many([(ordinal,) for ordinal in chosen])
    return [(ordinal, row) for ordinal, row in zip(chosen, rows, strict=True) if row is not None]


def observations(ctx: ReadContext, ordinal: int) -> list[ObservationRow]:
    """Everything reported of a decision, oldest first."""
    return [row for _, row in ctx[OBSERVATIONS].scan(ordinal)]


# --- cells ----------------------------------------------------------------------------------------


def digest(ctx: ReadContext, what: str, text: str) -> bytes:
    """16 bytes that stand for a caller's text in keys."""
    return hmac.digest(ctx.scope.key, f"{what}:{text}".encode(), "sha256")[:DIGEST_BYTES]


def cells_of(
    ctx: ReadContext,
    policy_key: str,
    *,
    number: int | None = None,
    user_id: str | None = None,
    actions: Iterable[str] | None = None,
) -> dict[str, CellRow]:
    """action key -> the sums over all its decisions that pass the filters."""
    user = b"" if user_id is None else digest(ctx, "user", user_id)
    gone = dropped_numbers(ctx)
    prefixes = [()] if actions is None else [(digest(ctx, "action", action),) for action in actions]
    found: dict[str, CellRow] = {}
    for prefix in prefixes:
        for key, cell in ctx[POLICY_CELLS].scan(digest(ctx, "policy", policy_key), user, *prefix):
            if key[3] in gone or (number is not None and key[3] != number):
                continue
            known = found.get(cell.action_key)
            found[cell.action_key] = cell if known is None else _joined(known, cell)
    return found


def shared_range(
    cells: Iterable[CellRow], declared: tuple[float, float] | None = None
) -> tuple[float, float]:
    """The reward range of these cells: of those with outcomes, else as declared, else as assumed of
    any; 0 to 1 without cells.
    """
    known = list(cells)
    resolved = [cell for cell in known if cell.has_outcomes()]
    if declared is not None and not resolved:
        return declared
    return min((cell.low for cell in resolved or known), default=0.0), max(
        (cell.high for cell in resolved or known), default=1.0
    )


def rewards_of(cell: CellRow | None, span: tuple[float, float]) -> Rewards:
    """A cell's rewards, in the form the statistics take. span: the range of the others, for one
    that has seen no outcome.
    """
    if cell is None or not cell.has_outcomes():
        return Rewards(0, 0.0, 0.0, *span)
    return Rewards(cell.outcomes, cell.total, cell.squares, cell.low, cell.high)


def folds_of(cell: CellRow) -> list[Weighted]:
    """The sums for point estimates, by fold."""
    return [unpacked(values) for values in cell.folds]


def unpacked(values: Sequence[float]) -> Weighted:
    return Weighted(int(values[0]), int(values[1]), *values[2:])


def packed(sums: Weighted) -> list[float]:
    return [
        sums.offered, sums.taken, sums.total, sums.weights, sums.squares, sums.largest, sums.valued,
        sums.clipped, sums.clipped_valued,
    ]  # fmt: skip


def _joined(one: CellRow, other: CellRow) -> CellRow:
    folds = [
        packed(mine + theirs) for mine, theirs in zip(folds_of(one), folds_of(other), strict=True)
    ]
    return CellRow(
        one.action_key,
        min(one.low, other.low),
        max(one.high, other.high),
        one.count + other.count,
        one.outcomes + other.outcomes,
        one.total + other.total,
        one.squares + other.squares,
        folds,
    )


def is_offered(row: DecisionRecord, place: int) -> bool:
    """Whether the decision says something of "always this action": its propensity is known and did
    not rule the action out.
    """
    return row.propensity is not None and row.probabilities[place] != 0


def weight_of(row: DecisionRecord, place: int) -> float:
    """What the decision counts for "always this action": the inverse of its propensity where it
    took the action, else nothing.
    """
    return 1 / row.propensity if place == row.chosen and row.propensity is not None else 0.0


def _change_cells(
    ctx: WriteContext, ordinal: int, row: DecisionRecord, sign: int, *, decided: bool = False
) -> None:
    """Add (sign 1) or take away (−1) a decision's part in the cells: itself when `decided`, else
    its outcome.
    """
    table, fold = ctx[POLICY_CELLS], ordinal % FOLDS
    low, high = row.bounds
    for user in [b"", *([] if row.user_id is None else [digest(ctx, "user", row.user_id)])]:
        for place, action in enumerate(row.actions):
            key = (
                digest(ctx, "policy", row.policy_key),
                user,
                digest(ctx, "action", action),
                row.number,
            )
            cell = table.get(*key) or CellRow(action, low, high, folds=[packed(Weighted())] * FOLDS)
            chosen = place == row.chosen
            if decided:
                cell.count += sign * chosen
            else:
                _change_outcome(cell, row, place, fold, sign)
            table.put(key, cell)


def _change_outcome(cell: CellRow, row: DecisionRecord, place: int, fold: int, sign: int) -> None:
    chosen = place == row.chosen
    low, high = row.bounds
    # The range of the first outcome replaces what was assumed before any.
    cell.low, cell.high = (
        (min(cell.low, low), max(cell.high, high)) if cell.has_outcomes() else (low, high)
    )
    if chosen:
        cell.outcomes += sign
        cell.total += sign * row.outcome
        cell.squares += sign * row.outcome**2
    if is_offered(row, place):
        weight = weight_of(row, place)
        one = Weighted.of([weight], [row.outcome], WEIGHT_CAP)
        before = cell.folds[fold]
        after = [value + sign * part for value, part in zip(before, packed(one), strict=True)]
        after[5] = max(
            before[5], weight
        )  # the largest weight is of the propensities, which no correction changes
        cell.folds = [*cell.folds[:fold], after, *cell.folds[fold + 1 :]]


# --- writing --------------------------------------------------------------------------------------


def store_record(
    ctx: WriteContext,
    row: DecisionRecord,
    details: DetailsRow,
    vector: tuple[str, np.ndarray] | None,
) -> int:
    """Write a new decision with everything that is kept over decisions; -> its ordinal."""
    ordinal = ctx.next_ordinal("receipts")
    ctx[DECISION_RECORDS].put((ordinal,), row)
    ctx[DECISION_DETAILS].put((ordinal,), details)
    ctx[DECISION_IDS].put((row.id,), ordinal.to_bytes(8, "big"))
    policy = find_policy(ctx, row.policy_key)
    if policy is None or policy.place < 0:
        _put_policy(ctx, row.policy_key, policy or PolicyRow(ctx.now))
    fields = ctx.index(DECISION_FIELDS)
    for name, value in _entries(row):
        fields.add(ordinal, name, value)
    if vector is not None:
        ctx.index(DECISION_VECTORS).put(vector[0], ordinal, vector[1])
    _change_cells(ctx, ordinal, row, 1, decided=True)
    return ordinal


def store_outcome(
    ctx: WriteContext, ordinal: int, row: DecisionRecord, changes: Mapping[str, Any]
) -> DecisionRecord:
    """Write what new observations make of a decision: `changes` of metrics, reward, status. The
    policy's evidence moves on by one.
    """
    policy = get_policy(ctx, row.policy_key)
    policy.revision += 1
    after = msgspec.structs.replace(row, revision=policy.revision, **changes)
    if row.reward is not None:
        _change_cells(ctx, ordinal, row, -1)
    if after.reward is not None:
        _change_cells(ctx, ordinal, after, 1)
        ctx.index(DECISION_FIELDS).add(ordinal, "resolved", 1)
    _put_policy(ctx, row.policy_key, policy)
    ctx[DECISION_RECORDS].put((ordinal,), after)
    return after


def _put_policy(ctx: WriteContext, policy_key: str, policy: PolicyRow) -> None:
    """Write the policy, in the list of all when it is not there yet."""
    if policy.place < 0:
        policy.place = ctx.next_ordinal("policies")
        ctx[POLICY_NAMES].put((policy.place,), PolicyNameRow(policy_key))
    ctx[POLICIES].put((digest(ctx, "policy", policy_key),), policy)


def _entries(row: DecisionRecord) -> Iterator[tuple[str, int | str]]:
    yield "policy", row.policy_key
    yield "collection", row.number
    if row.user_id is not None:
        yield "user", row.user_id


def sweep_collection(
    ctx: WriteContext, event_id: str, kind: str, data: Sweep, resource_id: str
) -> None:
    """Subscriber: one step of removing a dropped collection's decisions, and the cells they were
    summed up in.
    """
    step = min(data.rows_left, DECISIONS_SWEPT_PER_STEP)
    if step <= 0:
        return
    doomed = ctx.index(DECISION_FIELDS).of("collection", data.number)[:step]
    for ordinal in doomed:
        _remove(ctx, ordinal)
    data.erased("decisions", len(doomed))
    if len(doomed) == step:
        data.rows_left = 0


def _remove(ctx: WriteContext, ordinal: int) -> None:
    row = ctx[DECISION_RECORDS].row(ordinal)
    fields, vectors = ctx.index(DECISION_FIELDS), ctx.index(DECISION_VECTORS)
    for name, value in [*_entries(row), ("resolved", 1)]:
        fields.remove(ordinal, name, value)
    for space in vectors.spaces():
        vectors.delete(space, ordinal)
    for action in row.actions:
        for user in (b"", b"" if row.user_id is None else digest(ctx, "user", row.user_id)):
            ctx[POLICY_CELLS].delete(
                digest(ctx, "policy", row.policy_key),
                user,
                digest(ctx, "action", action),
                row.number,
            )
    ctx[OBSERVATIONS].delete_prefix(ordinal)
    ctx[DECISION_IDS].delete(row.id)
    ctx[DECISION_DETAILS].delete(ordinal)
    ctx[DECISION_RECORDS].delete(ordinal)


def erase(ctx: WriteContext) -> dict[str, int]:
    """Remove all decisions and their evidence. Counts of rows by table, of vectors by index."""
    counts = {}
    for index in INDEXES:
        if index is DECISION_VECTORS:
            counts[index.name] = ctx.index(index).clear()
        else:
            counts |= {table.name: ctx[table].delete_prefix() for table in index.tables}
    return counts | {table.name: ctx[table].delete_prefix() for table in TABLES}
