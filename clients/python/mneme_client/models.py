"""What requests and answers hold: plain dictionaries, and these are their types.

Written by generate.py from the service's OpenAPI document; change that, not this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict


class Accepted(TypedDict):
    job_id: str
    """The job that trains."""
    status_url: str
    """Where it reports."""


class Account(TypedDict):
    user_id: str
    """The account's id."""
    email: str
    """The normalised e-mail address."""
    full_name: str
    """The account holder's name."""
    tier: str
    """The tier of the account's plan."""
    created_at: str
    """When it was registered (ISO 8601)."""
    email_verified: bool
    """Whether a mail proved that its holder has the e-mail address."""
    second_factor: bool
    """Whether a login needs a code beside the password."""


class ActionInsight(TypedDict):
    action_key: str
    count: int
    """Decisions that took it."""
    outcomes: int
    """Of these, how many have an outcome."""
    censored: int
    """And how many have none yet."""
    posterior: Posterior
    probability_best: float
    """Of being the best of the actions shown, by the posteriors."""
    effective_sample_size: float
    """(Σw)² / Σw²."""
    estimators: Estimators
    """What always taking it would bring: points, without guarantee."""


class AdvancedReply(TypedDict):
    query: str
    results: list[Hit]
    total: int
    """How many memories passed the threshold, before offset and limit, of those that were
    looked at: each channel proposes `search.candidates`, or as many as offset and limit ask
    for where that is more, 1,000 at most.
    """
    search_type: str
    processing_time_ms: float
    no_match: bool
    """Nothing stored stands as an answer; there are no results then."""
    abstain_recommended: bool
    """Better not to answer from these results."""
    abstain_reason: NotRequired[Literal["no_match", "weak_evidence", "subject_conflict"] | None]
    """Why. subject_conflict: what the query asks of one speaker fits another one better."""
    query_confidence: float
    """0 to 1; how likely the results hold an answer. It ranks queries; it is no probability."""
    grounding: Grounding
    evidence_ids: list[str]
    safety_contract_version: str
    scores_calibrated: bool
    """Always false: scores rank, they are no probabilities."""
    ranking_profile: NotRequired[Literal["ranking", "ranking_notes", "ranking_fast"] | None]
    """With `explain`: the section of the settings whose weights were used."""
    reranker_applied: bool
    degraded: bool
    """Whether a channel was missing; degraded_reasons says which."""
    degraded_reasons: list[str]
    query_entities: list[str]
    facets: dict[str, list[FacetCount]]
    """Each facet's most frequent values, counted over all `total` results."""


class AllDeletedOfCollections(TypedDict):
    deleted: int
    """Collections deleted; the default collection stays, emptied."""


class AllDeletedOfMemoryViews(TypedDict):
    deleted: int
    """Memories deleted."""


class Attempt(TypedDict):
    at: str
    """When its outcome was known (ISO 8601)."""
    status_code: int | None
    """The receiver's HTTP status; null without an answer."""
    duration_ms: int
    """How long it took."""
    error: str | None
    """Why it failed; null when it succeeded."""
    response_body: str
    """The first 16 KiB of the answer, as text."""


class Audit(TypedDict):
    examined: int
    """Memories looked at, the newest of the scope."""
    duplicates: list[DuplicateGroup]
    """Groups of near duplicates."""
    stale: list[StaleMemory]
    """Memories that nothing has used for long, oldest first."""
    never_used: int
    """Memories no search has returned."""


class AvailableModel(TypedDict):
    id: str
    """What a request names as its `model`."""
    object: Literal["model"]
    """Always `model`."""
    created: int
    """Always 0: when it was made is not known here."""
    owned_by: str
    """`mneme`, or `llm` for those of the endpoint."""


class AvailableModels(TypedDict):
    object: Literal["list"]
    """Always `list`."""
    data: list[AvailableModel]
    """The model that is asked by default first."""


class BatchCreated(TypedDict):
    created: int
    """Items stored."""
    failed: int
    """Items refused."""
    accepted: int
    """The same as created."""
    durable: Literal[True]
    """What was created is on disk, in one transaction."""
    memory_ids: list[str]
    """Ids of the memories created, in order."""
    errors: list[IndexedError]
    """The refusals."""
    results: list[BatchResult]
    """One entry per item, in order."""
    searchable: bool
    """Whether all created memories are searchable."""
    processing_status: Literal["processing", "completed", "failed"]
    """`completed` when they are."""
    status_url: str | None
    """The job's path; null when nothing was created."""
    outbox_event_id: str | None
    """The event of the first memory; null when nothing was created."""


class BatchResult(TypedDict):
    index: int
    """The item's place in the request, from 0."""
    id: str | None
    """The memory's id; null when the item failed."""
    memory_id: str | None
    """The same."""
    status: Literal["created", "failed"]
    """What became of the item."""
    processing_status: Literal["processing", "completed", "failed"]
    """`completed` when it is searchable; `failed` with the item."""
    error: NotRequired[ItemError | None]
    """Why it failed."""


class BetaParameters(TypedDict):
    family: Literal["beta"]
    a: float
    """1 + the sum of the rewards."""
    b: float
    """1 + what they lack to 1 each."""


class Boosts(TypedDict):
    recency: NotRequired[RecencyBoost | None]
    """Prefer what happened lately."""
    importance: NotRequired[float | None]
    """What a memory of importance 1 gains."""
    tier: NotRequired[Mapping[str, float] | None]
    """Tier to weight."""
    tags: NotRequired[Mapping[str, float] | None]
    """Tag to weight."""
    metadata: NotRequired[Sequence[MetadataBoost] | None]
    """Metadata values to prefer."""
    channels: NotRequired[Channels | None]
    """Multipliers of the channels."""


class BulkDeletedOfCollections(TypedDict):
    deleted: int
    """Collections deleted."""
    not_found: int
    """Ids that name no collection of this account."""
    results: list[BulkResultOfCollections]
    """One entry for each id, in order."""


class BulkDeletedOfMemoryViews(TypedDict):
    deleted: int
    """Memories deleted."""
    not_found: int
    """Ids that name no memory of this account."""
    results: list[BulkResultOfMemoryViews]
    """One entry per id, in order."""


class BulkResultOfCollections(TypedDict):
    id: str
    """The id as it was sent."""
    status: Literal["deleted", "not_found", "forbidden"]
    """forbidden: the default collection, or another account's."""


class BulkResultOfMemoryViews(TypedDict):
    id: str
    """The id as it was sent."""
    status: Literal["deleted", "not_found", "forbidden"]
    """forbidden: another account's."""


class Candidate(TypedDict):
    action_key: str
    """Name of an action."""
    description: NotRequired[str | None]
    """What the action does."""
    features: NotRequired[Mapping[str, Any] | None]
    """What is known of the action; kept, not interpreted."""
    memory_ids: NotRequired[Sequence[str] | None]
    """Memories that speak for it."""


class Channels(TypedDict):
    """Multipliers of the ranking's weights, 1 for each that is absent."""

    semantic: NotRequired[float | None]
    """Meaning: vectors and late interaction."""
    lexical: NotRequired[float | None]
    """Words."""
    graph: NotRequired[float | None]
    """Candidates of the knowledge graph: above 0 asks for them, 0 leaves them out."""
    temporal: NotRequired[float | None]
    """Times that the query names or asks for."""
    facet: NotRequired[float | None]
    """What a memory is: its speaker, its length, numbers and names in it."""


class ChatReply(TypedDict):
    """OpenAI's response, unchanged, and what memory had to do with it."""

    id: str
    object: Literal["chat.completion"]
    created: int
    """Unix seconds."""
    model: str
    choices: list[Choice]
    usage: NotRequired[dict[str, Any] | None]
    """Tokens, as the endpoint counted them."""
    memory: MemoryUse


class Choice(TypedDict):
    index: int
    message: dict[str, Any]
    """The assistant's message, tool calls included."""
    finish_reason: NotRequired[str | None]
    """Why the model stopped."""


class Chunk(TypedDict):
    id: str
    """The chunk's id; the same for the same document and index."""
    document_id: str
    """The document it is of."""
    index: int
    """Its place in the document, from 0."""
    content: str
    """Its text: characters `start` to `end` of the extracted text."""
    start: int
    """Its first character in the extracted text, counted in Unicode code points."""
    end: int
    """The character after its last."""
    page: int | None
    """The page, slide or sheet it is on, from 1; a chunk never spans two."""
    heading: str | None
    """The heading it stands under."""
    start_seconds: float | None
    """When it begins to be said."""
    end_seconds: float | None
    """When it ends."""
    memory_id: str | None
    """The memory that holds it; null until it is indexed, and once that was deleted."""


class Citation(TypedDict):
    memory_id: str
    start: int
    """First code point of the quotation in the memory's content."""
    end: int
    """The code point after its last."""
    quote: str
    """Exactly `content[start:end]`."""


class Cleanup(TypedDict):
    status: Literal["queued"]
    """Removal of derived data goes on in the background."""
    job_id: str
    """The job that does it; `GET /v1/account/receipts` says what it has removed."""


class CleanupReceipt(TypedDict):
    job_id: str
    """The cleanup job."""
    cause: str
    """What is cleaned up after, such as `collections.cleanup`."""
    status: Literal["queued", "processing", "completed", "failed"]
    """Where it stands."""
    created_at: str
    """When the deletion was asked for (ISO 8601)."""
    finished_at: str | None
    """When the last store was swept (ISO 8601)."""
    receipts: list[StoreReceipt]
    """What was swept so far, by store."""


class Collection(TypedDict):
    id: str
    """The collection's id."""
    name: str
    """Its name."""
    description: str | None
    """What it is for."""
    metadata: dict[str, Any]
    """Free JSON object."""
    is_default: bool
    """Whether memories without a collection_id go here."""
    is_active: bool
    """True: a deleted collection is not shown at all."""
    memory_count: int
    """Memories in it, superseded ones included; what has expired for a minute more."""
    document_count: int
    """Documents in it."""
    version: int
    """Counts the changes of name, description and metadata, from 1."""
    created_at: str
    """When it was created (ISO 8601)."""
    updated_at: str
    """When its name, description or metadata last changed (ISO 8601)."""


class CollectionChanged(TypedDict):
    id: str
    """The collection's id."""
    name: str
    """Its name."""
    change: Literal["created", "metadata", "membership"]
    """What changed."""
    version: int
    """Its version after the change."""


class Confidence(TypedDict):
    confidence: float
    """Mean of the posterior, 0 to 1."""
    recommended_action: Literal["act", "ask", "review"]
    """Advice; it authorises nothing."""
    basis: Literal["evidence", "prior"]
    decision_count: int
    """Similar decisions with an outcome."""
    lower_bound: float
    """5 % quantile of the posterior."""
    threshold: float
    """What the lower bound must reach for `act`."""
    reasoning: str
    corrections: list[RelevantCorrection]
    """What people have put right about this."""


class Confirmed(TypedDict):
    recovery_codes: list[str]
    """Each is good once in place of a code. They are shown this once."""


class ContextCitation(TypedDict):
    marker: str
    """How the block names the memory."""
    memory_id: str
    start: int
    """First code point of what is shown of the memory's content."""
    end: int
    """The code point after its last."""


class ContextReply(TypedDict):
    query: str
    context: str | dict[str, Any]
    """The block; an object in style json. Empty when nothing stored answers."""
    tokens: int
    """How many tokens the block is."""
    citations: list[ContextCitation]
    sections: list[ContextSection]
    no_match: bool
    """Nothing stored stands as an answer."""
    abstain_recommended: bool
    """Better not to answer from this."""
    abstain_reason: NotRequired[str | None]
    query_confidence: float
    grounding: Grounding
    evidence_ids: list[str]
    """The memories in the block, best first."""
    safety_contract_version: str
    scores_calibrated: bool
    degraded: bool
    degraded_reasons: list[str]


class ContextSection(TypedDict):
    title: str
    memory_ids: list[str]
    """What it shows, in its order."""


class ContradictingClaim(TypedDict):
    relationship_id: str
    """The relationship's id."""
    value: str
    """Name of its target."""
    valid_from: str | None
    """Since when (ISO 8601)."""
    valid_to: str | None
    """Until when (ISO 8601)."""
    memory_id: str | None
    """The memory that says so."""
    quote: str | None
    """That memory's words."""


class Contradiction(TypedDict):
    subject: str
    """Name of the entity both claims are about."""
    predicate: str
    """Their type."""
    claims: list[ContradictingClaim]
    """Both sides, the older one first."""
    overlap: Interval
    """When both would hold."""
    resolution: Resolution | None
    """Which one stands for now; null when nothing tells them apart."""


class Correction(TypedDict):
    id: str
    """The correction's id."""
    memory_id: str
    """The memory that holds the corrected content."""
    superseded_memory_id: str | None
    """The memory it took the place of."""
    corrected_content: str
    correction_type: Literal["preference", "factual", "procedural"]
    original_content: str | None
    context: str | None
    collection_id: str
    user_id: str | None
    agent_id: str | None
    confidence: float
    metadata: dict[str, Any]
    created_at: str
    searchable: bool
    processing_status: Literal["processing", "completed", "failed"]
    status_url: str
    outbox_event_id: str


class Created(TypedDict):
    """The memory's own fields when there is one, and the summary in any case."""

    id: NotRequired[str]
    """The memory's id."""
    content: NotRequired[str]
    """Its text, as it was sent."""
    collection_id: str
    """The collection written to."""
    importance: NotRequired[float]
    """How much it matters, 0 to 1."""
    tier: NotRequired[Literal["short_term", "long_term", "archived"]]
    """How close at hand it is kept."""
    title: NotRequired[str | None]
    """A short name."""
    tags: NotRequired[list[str]]
    """Labels."""
    source: NotRequired[str | None]
    """Where it comes from."""
    source_type: NotRequired[str]
    """What kind of source that is."""
    kind: NotRequired[Literal["episodic", "semantic", "document", "file", "note"]]
    """What it is, by its source: what was told in a conversation, a fact that was read in it,
    a passage of a document, a file of an agent's memory folder, or any other text.
    """
    source_reference: NotRequired[str | None]
    """A reference into the source."""
    metadata: NotRequired[dict[str, Any]]
    """Free JSON object."""
    user_id: NotRequired[str | None]
    """The caller's end user."""
    agent_id: NotRequired[str | None]
    """The agent that remembers."""
    run_id: NotRequired[str | None]
    """The run or conversation."""
    app_id: NotRequired[str | None]
    """The application."""
    session_id: NotRequired[str | None]
    """The session it was said in."""
    speaker: NotRequired[str | None]
    """Who said it."""
    role: NotRequired[Literal["user", "assistant", "system", "tool"] | None]
    """As what it was said in a chat with an assistant."""
    occurred_at: NotRequired[str]
    """When what it tells happened (ISO 8601)."""
    created_at: NotRequired[str]
    """When it was stored (ISO 8601)."""
    updated_at: NotRequired[str]
    """When its current version was stored (ISO 8601)."""
    version: NotRequired[int]
    """Counts its versions, from 1; the ETag."""
    access_count: NotRequired[int]
    """How often searches returned it, as last written down."""
    last_accessed_at: NotRequired[str | None]
    """When one last did (ISO 8601)."""
    processing_status: Literal["processing", "completed", "failed"]
    """`completed` when all are searchable."""
    searchable: bool
    """Whether all are searchable."""
    status_url: str
    """Where to ask again: the memory, or the job of several."""
    outbox_event_id: str | None
    """The event of the first memory; null when a repeated request made none."""
    conflict_status: NotRequired[Literal["none", "superseded"]]
    """Whether a newer memory has taken its place."""
    superseded_by_id: NotRequired[str | None]
    """That newer memory."""
    expires_at: NotRequired[str | None]
    """When it ceases to be readable (ISO 8601); null: never."""
    results: list[WriteResult]
    """One entry per memory, in order."""
    memory_ids: list[str]
    """The same ids."""
    created_count: int
    """Memories added."""
    updated_count: int
    """Memories that took another's place."""
    skipped_count: int
    """Texts that were known already."""
    request_id: str
    """This request's id."""
    job_id: NotRequired[str | None]
    """The job that makes them searchable, while one is needed."""
    poll_url: NotRequired[str | None]
    """Where that job reports."""


class CreatedEntity(TypedDict):
    id: str
    """The entity's id; it never changes."""
    name: str
    """Its name, as first written."""
    normalized_name: str
    """NFKC, case-folded, white space collapsed: what names are compared by."""
    type: str
    """What it is; `unknown` when nobody said."""
    aliases: list[str]
    """Further names."""
    attributes: dict[str, Any]
    """Free JSON object."""
    mention_count: int
    """Memories that mention it."""
    first_seen_at: str
    """When it was first spoken of (ISO 8601)."""
    last_seen_at: str
    """When it was last spoken of (ISO 8601)."""
    collection_id: str | None
    """The collection it belongs to."""
    primary: Primary
    replica_delivery: ReplicaDelivery


class CreatedMemory(TypedDict):
    """One memory: its own fields and the summary."""

    id: str
    """The memory's id."""
    content: str
    """Its text, as it was sent."""
    collection_id: str
    """The collection written to."""
    importance: float
    """How much it matters, 0 to 1."""
    tier: Literal["short_term", "long_term", "archived"]
    """How close at hand it is kept."""
    title: str | None
    """A short name."""
    tags: list[str]
    """Labels."""
    source: str | None
    """Where it comes from."""
    source_type: str
    """What kind of source that is."""
    kind: Literal["episodic", "semantic", "document", "file", "note"]
    """What it is, by its source: what was told in a conversation, a fact that was read in it,
    a passage of a document, a file of an agent's memory folder, or any other text.
    """
    source_reference: str | None
    """A reference into the source."""
    metadata: dict[str, Any]
    """Free JSON object."""
    user_id: str | None
    """The caller's end user."""
    agent_id: str | None
    """The agent that remembers."""
    run_id: str | None
    """The run or conversation."""
    app_id: str | None
    """The application."""
    session_id: str | None
    """The session it was said in."""
    speaker: str | None
    """Who said it."""
    role: Literal["user", "assistant", "system", "tool"] | None
    """As what it was said in a chat with an assistant."""
    occurred_at: str
    """When what it tells happened (ISO 8601)."""
    created_at: str
    """When it was stored (ISO 8601)."""
    updated_at: str
    """When its current version was stored (ISO 8601)."""
    version: int
    """Counts its versions, from 1; the ETag."""
    access_count: int
    """How often searches returned it, as last written down."""
    last_accessed_at: str | None
    """When one last did (ISO 8601)."""
    processing_status: Literal["processing", "completed", "failed"]
    """`completed` when all are searchable."""
    searchable: bool
    """Whether all are searchable."""
    status_url: str
    """Where to ask again: the memory, or the job of several."""
    outbox_event_id: str | None
    """The event of the first memory; null when a repeated request made none."""
    conflict_status: Literal["none", "superseded"]
    """Whether a newer memory has taken its place."""
    superseded_by_id: str | None
    """That newer memory."""
    expires_at: str | None
    """When it ceases to be readable (ISO 8601); null: never."""
    results: list[WriteResult]
    """One entry per memory, in order."""
    memory_ids: list[str]
    """The same ids."""
    created_count: int
    """Memories added."""
    updated_count: int
    """Memories that took another's place."""
    skipped_count: int
    """Texts that were known already."""
    request_id: str
    """This request's id."""
    job_id: NotRequired[str | None]
    """The job that makes them searchable, while one is needed."""
    poll_url: NotRequired[str | None]
    """Where that job reports."""


class CreatedRelationship(TypedDict):
    id: str
    """The relationship's id; it never changes."""
    source: EntityName
    """The subject."""
    type: str
    """The predicate."""
    target: EntityName
    """The object."""
    attributes: dict[str, Any]
    """Free JSON object."""
    confidence: float
    """How sure it is, 0 to 1."""
    valid_from: str | None
    """Since when it holds (ISO 8601); null: always."""
    valid_to: str | None
    """Until when, exclusive (ISO 8601); null: open."""
    recorded_at: str
    """When we learned it (ISO 8601)."""
    invalidated_at: str | None
    """When we learned that it was wrong (ISO 8601)."""
    source_memory_id: str | None
    """The memory that first said so."""
    functional: bool
    """Whether a subject has one such target at a time."""
    created_entities: list[EntityName]
    """Entities that were made because a name was new."""
    closed: list[str]
    """Ids of the relationships that close_previous ended."""
    primary: Primary
    replica_delivery: ReplicaDelivery


class Credits(TypedDict):
    used: int
    """Credits used or reserved since the period began."""
    limit: int
    """Credits of the period; -1 is unlimited."""
    remaining: int
    """Credits left; -1 is unlimited."""
    percentage: float
    """Share of the limit that is used, 0 to 100; 0 when unlimited."""


class DayCounts(TypedDict):
    date: str
    """The day (UTC)."""
    relevance: int
    ranking: int
    missing: int


class Decided(TypedDict):
    decision_id: str
    """The decision's id."""
    policy_key: str
    policy_version: int
    """How often the policy's evidence had changed when the choice was made."""
    mode: Literal["auto", "observe", "recommend", "explore", "shadow"]
    chosen_action_key: str
    """The action to take, or that was taken."""
    recommended_action_key: str
    """The best action by the evidence at that time."""
    baseline_action_key: str | None
    used_baseline: bool
    """Whether the choice came from the baseline."""
    action_probability: float | None
    """How likely the chosen action was; null when unknown."""
    distribution: dict[str, float]
    """Action → probability, as far as it is known; the choice was drawn from it."""
    propensity_source: Literal["server", "client", "unknown"]
    reason: str
    """Why, in a sentence."""
    created_at: str
    replayed: bool
    """Whether this answers a repeated Idempotency-Key."""
    authorizes_action: Literal[False]
    """Always false: evidence informs an action, it does not permit one."""


class DecisionEvidence(TypedDict):
    decision_id: str
    """The decision's id."""
    policy_key: str
    policy_version: int
    """How often the policy's evidence had changed when the choice was made."""
    mode: Literal["auto", "observe", "recommend", "explore", "shadow"]
    chosen_action_key: str
    """The action to take, or that was taken."""
    recommended_action_key: str
    """The best action by the evidence at that time."""
    baseline_action_key: str | None
    used_baseline: bool
    """Whether the choice came from the baseline."""
    action_probability: float | None
    """How likely the chosen action was; null when unknown."""
    distribution: dict[str, float]
    """Action → probability, as far as it is known; the choice was drawn from it."""
    propensity_source: Literal["server", "client", "unknown"]
    reason: str
    """Why, in a sentence."""
    created_at: str
    replayed: bool
    """Whether this answers a repeated Idempotency-Key."""
    authorizes_action: Literal[False]
    """Always false: evidence informs an action, it does not permit one."""
    context: dict[str, Any]
    candidates: list[dict[str, Any]]
    reward_range: list[float] | None
    collection_id: str | None
    user_id: str | None
    outcomes: list[Outcome]
    """Everything reported, oldest first; of each metric the latest counts."""
    status: Literal["pending", "final", "corrected"]
    composite_reward: float | None
    """Null while no outcome is known: censored, which is no failure."""
    evidence_revision: int
    """The policy's version that its latest outcome made; 0 before any."""


class DeletedCollection(TypedDict):
    id: str
    """The collection's id."""
    deleted: Literal[True]
    """It and everything in it can no longer be read."""
    cleanup: Cleanup
    """What is still going on."""


class DeletedCorrection(TypedDict):
    id: str
    """The correction's id."""
    deleted: Literal[True]
    """It and its memory can no longer be read or found."""


class DeletedDocument(TypedDict):
    id: str
    """The document's id."""
    deleted: Literal[True]
    """It and its chunks can no longer be read or found."""


class DeletedOfGraph(TypedDict):
    id: str
    """The id."""
    deleted: Literal[True]
    """It is gone, on both clocks."""


class DeletedOfMemoryViews(TypedDict):
    id: str
    """The memory's id."""
    deleted: Literal[True]
    """It can no longer be read or found."""


class DeletedOfProfile(TypedDict):
    deleted: bool


class DeletedWebhook(TypedDict):
    id: str
    """The webhook's id."""
    deleted: Literal[True]
    """It delivers nothing any more, and its deliveries are being removed."""


class Delivery(TypedDict):
    id: str
    """The delivery's id."""
    webhook_id: str
    """The webhook it goes to."""
    event_id: str
    """The event's id, `id` in the body that is sent."""
    event_type: Literal[
        "memory.created",
        "memory.updated",
        "memory.deleted",
        "memory.tier_changed",
        "document.created",
        "document.processed",
        "document.failed",
        "document.deleted",
        "collection.created",
        "collection.updated",
        "search.completed",
        "user.feedback_received",
        "rl.training_started",
        "rl.training_completed",
        "rl.training_failed",
        "billing.suspended",
        "billing.resumed",
    ]
    """The kind of event."""
    status: Literal["pending", "retrying", "delivered", "failed", "skipped"]
    """pending: not tried yet; retrying: between attempts; failed: a dead letter; skipped: the
    webhook was disabled.
    """
    idempotency_key: str
    """The same in every attempt and replay; receivers deduplicate by it."""
    attempt_count: int
    """Attempts made so far."""
    created_at: str
    """When the event happened (ISO 8601)."""
    next_attempt_at: str | None
    """When the next attempt is due, between attempts."""
    finished_at: str | None
    """When it was delivered, failed or skipped."""


class DeliveryDetail(TypedDict):
    id: str
    """The delivery's id."""
    webhook_id: str
    """The webhook it goes to."""
    event_id: str
    """The event's id, `id` in the body that is sent."""
    event_type: Literal[
        "memory.created",
        "memory.updated",
        "memory.deleted",
        "memory.tier_changed",
        "document.created",
        "document.processed",
        "document.failed",
        "document.deleted",
        "collection.created",
        "collection.updated",
        "search.completed",
        "user.feedback_received",
        "rl.training_started",
        "rl.training_completed",
        "rl.training_failed",
        "billing.suspended",
        "billing.resumed",
    ]
    """The kind of event."""
    status: Literal["pending", "retrying", "delivered", "failed", "skipped"]
    """pending: not tried yet; retrying: between attempts; failed: a dead letter; skipped: the
    webhook was disabled.
    """
    idempotency_key: str
    """The same in every attempt and replay; receivers deduplicate by it."""
    attempt_count: int
    """Attempts made so far."""
    created_at: str
    """When the event happened (ISO 8601)."""
    next_attempt_at: str | None
    """When the next attempt is due, between attempts."""
    finished_at: str | None
    """When it was delivered, failed or skipped."""
    attempts: list[Attempt]
    """Each attempt, oldest first; the last 50."""
    payload: dict[str, Any] | None
    """The body as it is sent; null once what it tells of was deleted."""


class DialecticReply(TypedDict):
    session_id: str
    assistant_message: str
    engine: Literal["llm", "extractive"]
    evidence_memory_ids: list[str]
    """Memories the message rests on."""
    hypotheses: list[HypothesisView]
    """Guesses about the user so far, most confident first."""
    follow_up_question: str | None
    """What would be worth asking the user, if anything."""
    abstain_recommended: bool
    """Nothing stored supports an answer."""
    degraded: bool
    """Whether the language model or a channel of the search was missing."""


class Document(TypedDict):
    id: str
    """The document's id."""
    filename: str
    """The name it was sent under."""
    title: str | None
    """The title given, or the one the file gives itself."""
    collection_id: str
    """The collection it belongs to."""
    media_type: str
    """What it is, by its content."""
    size_bytes: int
    """Length of the file."""
    sha256: str
    """Hex digest of the file."""
    status: Literal["pending", "processing", "completed", "failed"]
    """`completed`: every chunk of it is searchable, or there was nothing to be said."""
    processing_status: Literal["pending", "processing", "completed", "failed"]
    """The same."""
    error: DocumentError | None
    """Why it failed."""
    page_count: int | None
    """Pages, slides or sheets, where the format has them."""
    chunk_count: int
    """Chunks it was cut into."""
    duration_seconds: float | None
    """Length of a recording or of subtitles."""
    result: DocumentResult | None
    """What came of it; null until it is completed."""
    tags: list[str]
    """Labels."""
    metadata: dict[str, Any]
    """Free JSON object."""
    version: int
    """Counts the changes of its state, from 1."""
    created_at: str
    """When it was uploaded (ISO 8601)."""
    updated_at: str
    """When its state last changed (ISO 8601)."""
    file_removed_at: str | None
    """When its file was removed, because it could not be read (ISO 8601); null: it is kept."""


class DocumentChanged(TypedDict):
    """What the events document.* say."""

    id: str
    """The document's id."""
    version: int
    """Its version after the change."""
    collection_id: str
    """The collection it belongs to."""
    filename: str
    """The name it was sent under."""
    status: str
    """Its state; `deleted` when it was deleted."""
    chunk_count: int
    """Chunks it was cut into."""
    error: NotRequired[DocumentError | None]
    """Why it failed."""


class DocumentError(TypedDict):
    reason: str
    """A word for programs, such as `encrypted`, `damaged`, `no_text`,
    `transcription_unavailable`.
    """
    message: str
    """A sentence for people."""


class DocumentResult(TypedDict):
    kind: Literal["text", "transcript", "no_speech_detected"]
    """What processing made of it."""
    language: str | None
    """The language of a transcript, where it is known."""


class DuplicateGroup(TypedDict):
    keep: str
    """The one to keep: the oldest."""
    duplicates: list[str]
    """The others."""
    content: str
    """Text of the one to keep."""
    similarity: float
    """Least cosine between the one to keep and another."""


class Entity(TypedDict):
    id: str
    """The entity's id; it never changes."""
    name: str
    """Its name, as first written."""
    normalized_name: str
    """NFKC, case-folded, white space collapsed: what names are compared by."""
    type: str
    """What it is; `unknown` when nobody said."""
    aliases: list[str]
    """Further names."""
    attributes: dict[str, Any]
    """Free JSON object."""
    mention_count: int
    """Memories that mention it."""
    first_seen_at: str
    """When it was first spoken of (ISO 8601)."""
    last_seen_at: str
    """When it was last spoken of (ISO 8601)."""
    collection_id: str | None
    """The collection it belongs to."""


class EntityDetails(TypedDict):
    entity: Entity
    relationships: list[Relationship]
    """Its standing relationships, newest first."""
    source_memories: list[SourceMemory]
    """Memories that mention it, newest first."""


class EntityName(TypedDict):
    id: str
    """The entity's id."""
    name: str
    """Its name."""


class Erased(TypedDict):
    deleted: Literal[True]
    """Nobody can log in or read anything from now on."""
    receipt: str
    """Opens the receipts of the erasure, at POST /v1/account/receipts. It is shown this once."""
    status: Literal["queued"]
    """The stores are swept in the background."""


class Erasure(TypedDict):
    status: Literal["processing", "completed"]
    """`completed` when every store was swept and the key is gone."""
    requested_at: str
    """When the account was deleted (ISO 8601)."""
    finished_at: str | None
    """When the last store was swept (ISO 8601)."""
    receipts: list[StoreReceipt]
    """One entry for each store."""


class Estimators(TypedDict):
    ips: float | None
    clipped_ips: float | None
    snips: float | None
    dr: float | None
    """Doubly robust, cross-fitted."""


class Evaluation(TypedDict):
    verdict: Literal["sufficient", "insufficient", "harmful", "invalid"]
    lower_bound: float
    """Of the target's mean reward minus the baseline's, valid however often it is asked."""
    upper_bound: float
    estimate: float | None
    n: int
    """Decisions with an outcome that were looked at."""
    effective_sample_size: float
    guardrails: list[GuardrailVerdict]
    reasons: list[str]
    """What stands behind the verdict, in sentences."""
    authorizes_action: Literal[False]
    """Always false: evidence informs an action, it does not permit one."""


class EvidenceSpan(TypedDict):
    source: int
    """Index of the message, from 0; 0 for a content."""
    start: int
    """First code point of the quotation."""
    end: int
    """The code point after its last."""
    quote: str
    """The words, verbatim."""


class FacetCount(TypedDict):
    value: str | bool | int | float | None
    """A value of the field."""
    count: int
    """Results that carry it."""


class Fact(TypedDict):
    id: str
    key: str
    value: str
    confidence: float
    """1 for what was set; for what was derived it grows with the memories that say it."""
    evidence_memory_ids: list[str]
    """Memories that say it, latest first; empty for what was set."""
    observed_at: str
    """When it was last said (ISO 8601)."""


class Features(TypedDict):
    memory: NotRequired[bool | None]
    """Put in what memory knows about the last message."""
    profile: NotRequired[bool | None]
    """Put in the profile of `user`."""
    learning: NotRequired[bool | None]
    """Put in corrections that concern the last message."""


class FeedbackReceived(TypedDict):
    id: str
    """The feedback's id."""
    feedback_id: str
    """The same id."""
    kind: Literal["relevance", "ranking", "missing"]
    memory_id: NotRequired[str | None]
    """The memory it is about."""


class GraphAnswer(TypedDict):
    entities: list[Entity]
    """The ends of the relationships, and the entity asked for."""
    relationships: list[Relationship]
    """Nearest first."""
    valid_at: str
    """The instant that was asked about (ISO 8601)."""
    known_at: str
    """As of which knowledge (ISO 8601)."""


class GraphSearchReply(TypedDict):
    query: str
    results: list[Hit]
    total: int
    """How many memories passed the threshold, before offset and limit, of those that were
    looked at: each channel proposes `search.candidates`, or as many as offset and limit ask
    for where that is more, 1,000 at most.
    """
    search_type: str
    processing_time_ms: float
    no_match: bool
    """Nothing stored stands as an answer; there are no results then."""
    abstain_recommended: bool
    """Better not to answer from these results."""
    abstain_reason: NotRequired[Literal["no_match", "weak_evidence", "subject_conflict"] | None]
    """Why. subject_conflict: what the query asks of one speaker fits another one better."""
    query_confidence: float
    """0 to 1; how likely the results hold an answer. It ranks queries; it is no probability."""
    grounding: Grounding
    evidence_ids: list[str]
    safety_contract_version: str
    scores_calibrated: bool
    """Always false: scores rank, they are no probabilities."""
    ranking_profile: NotRequired[Literal["ranking", "ranking_notes", "ranking_fast"] | None]
    """With `explain`: the section of the settings whose weights were used."""
    reranker_applied: bool
    degraded: bool
    """Whether a channel was missing; degraded_reasons says which."""
    degraded_reasons: list[str]
    query_entities: list[str]
    entities: list[Entity]
    """The entities met, those asked for first."""
    relationships: list[Relationship]
    """The claims followed, nearest first."""
    paths: list[Path]
    """How each result was reached."""


class GraphStats(TypedDict):
    entities: int
    relationships: int
    """Claims that stand; those we took back are not counted."""
    entities_by_type: dict[str, int]
    relationships_by_type: dict[str, int]
    contradictions: int
    average_degree: float
    """Relationships per entity, both ends counted."""
    max_degree: int
    components: int
    """Groups of entities that are joined to each other."""
    updated_at: str | None
    """When the graph last changed (ISO 8601)."""


class Grounding(TypedDict):
    status: Literal["grounded", "weak", "no_grounded_match"]
    reason: str
    subject_anchors: list[str]
    """Speakers the query names."""


class Guardrail(TypedDict):
    metric_key: str
    """Name of a metric."""
    margin: NotRequired[float | None]
    """How much worse it may get."""
    direction: NotRequired[Literal["higher_is_better", "lower_is_better"] | None]
    """Which way is better."""


class GuardrailVerdict(TypedDict):
    metric_key: str
    passed: bool
    """Shown not to be worse than the margin allows."""
    lower_bound: float
    upper_bound: float
    estimate: float | None
    n: int


class Health(TypedDict):
    status: str
    """`ok`, `degraded` (was ready, a shard is missing now; with 200: the object store takes
    nothing, or a disk has no room) or `starting`.
    """
    version: str
    build: str
    shards: ShardCount
    checks: dict[str, str]
    """Name of a check -> `ok`, or what is wrong."""


class Highlight(TypedDict):
    start: int
    """First code point of a matching word in `content`."""
    end: int
    """The code point after its last."""


class HistoryItem(TypedDict):
    period_start: str
    """First instant of the hour, day or month (ISO 8601, UTC)."""
    requests: int
    credits: int


class Hit(TypedDict):
    id: str
    """The memory's id."""
    memory_id: str
    """The same id."""
    content: str
    score: float
    """Weighted sum of the ranking features; a ranking signal, not a probability."""
    normalized_score: float
    """The score as a share of the best reachable, 0 to 1."""
    rank: int
    """From 1 (from offset + 1 with an offset)."""
    collection_id: str
    metadata: NotRequired[dict[str, Any] | None]
    tags: NotRequired[list[str] | None]
    speaker: str | None
    session_id: str | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    app_id: str | None
    occurred_at: str
    created_at: str
    updated_at: str
    tier: str
    low_confidence: bool
    """Whether the result is too weak to stand on its own."""
    highlights: NotRequired[list[Highlight] | None]
    explanation: NotRequired[dict[str, float] | None]
    """Contribution of each feature, with `explain`."""
    evidence: NotRequired[list[HitEvidence] | None]
    """Facts that are no results of their own beside the turn that they rest on."""
    outdated: NotRequired[list[Outdated] | None]
    """Where the content says what has been superseded since; the rest of it stands."""


class HitEvidence(TypedDict):
    memory_id: str
    """The turn, which is the result."""
    start: int
    """First code point of what the fact was read in."""
    end: int
    """The code point after its last."""
    fact_id: str
    """The memory of the fact."""


class Hop(TypedDict):
    relationship_id: str
    """The claim that was followed."""
    source: str
    """Name of its subject."""
    type: str
    """Its predicate."""
    target: str
    """Name of its object."""


class HourLatency(TypedDict):
    requests: int
    """Requests that were let in."""
    client_errors: int
    """Of these, those answered with 4xx."""
    server_errors: int
    """Of these, those answered with 5xx, or not at all."""
    error_share: float
    """Share of both among the requests, 0 to 1."""
    mean_ms: float
    """Mean milliseconds."""
    p50_ms: float
    """Half were answered within so many milliseconds."""
    p95_ms: float
    """95 of 100 were answered within so many milliseconds."""
    p99_ms: float
    """99 of 100 were answered within so many milliseconds."""
    period_start: str
    """First instant of the hour (ISO 8601, UTC)."""


class HypothesisView(TypedDict):
    statement: str
    confidence: float
    """0 to 1."""
    evidence_memory_ids: list[str]


class ImportSummary(TypedDict):
    lines: int
    """Lines that were sent."""
    created: int
    """Memories stored."""
    failed: int
    """Lines that are no memory, or cannot be one."""
    error: ItemError | None
    """Why it stopped before the end: lines without an outcome are to be sent again, with all
    others and the same key. null when every line has one.
    """


class Imported(TypedDict):
    created: dict[str, int]
    """Records taken in, by kind."""
    known: dict[str, int]
    """Records that were here already, by kind."""
    skipped: dict[str, int]
    """Records of kinds that are not taken in, by kind."""
    verified: bool
    """Whether this installation has signed it as an export of this account, and nobody has
    changed it since.
    """


class IndexedError(TypedDict):
    code: str
    """An error code of the API."""
    message: str
    """What is wrong with the item."""
    index: int
    """The item's place in the request, from 0."""


class Ingestion(TypedDict):
    job_id: str
    """The job's id."""
    status: Literal["queued", "processing", "completed", "failed"]
    """Where it stands."""
    status_url: str
    """Where to ask again."""
    poll_url: str
    """The same."""
    progress: NotRequired[float | None]
    """0 to 1; in the answer to a request that waited."""
    created_at: NotRequired[str | None]
    """When it was accepted (ISO 8601)."""
    started_at: NotRequired[str | None]
    """When it began (ISO 8601)."""
    finished_at: NotRequired[str | None]
    """When it ended (ISO 8601)."""
    attempts: NotRequired[int | None]
    """Attempts so far."""
    result: NotRequired[IngestionResult | None]
    """What it did."""
    error: NotRequired[str | None]
    """Why it failed."""


class IngestionEvent(TypedDict):
    event: Literal["ADD", "UPDATE", "DELETE", "NOOP"]
    """What became of the statement."""
    memory_id: str | None
    """The memory that holds it; null in a dry run."""
    memory: str
    """The text."""
    previous_content: NotRequired[str | None]
    """UPDATE, DELETE: the text that it supersedes."""
    previous_memory_id: NotRequired[str | None]
    """UPDATE, DELETE: the memory that it supersedes."""
    merged_memory_id: NotRequired[str | None]
    """NOOP: where its words are kept, superseded by `memory_id`; restoring that undoes the
    merge.
    """
    evidence: list[EvidenceSpan]
    """Where it was said."""
    reason: str
    """Why."""


class IngestionResult(TypedDict):
    facts_extracted: int
    """Claims found."""
    memories_created: int
    """Memories stored, those of UPDATE and DELETE included."""
    memories_updated: int
    """Memories superseded by another claim."""
    memories_invalidated: int
    """Memories superseded because they hold no more."""
    skipped: int
    """Statements that were known."""
    events: list[IngestionEvent]
    """One per statement, in order."""
    statements: NotRequired[StatementCounts | None]
    """What became of the sentences."""
    entities: int
    """Entities spoken of."""
    relationships: int
    """Claims stored in the graph."""
    engine: Literal["rules", "llm"]
    """Who found the facts."""
    degraded: NotRequired[list[str] | None]
    """What went wrong on the way; absent when nothing did."""


class Insights(TypedDict):
    policy_key: str
    policy_version: int
    action_count: int
    """Actions known; those taken most often are shown."""
    actions: list[ActionInsight]
    overlap: float
    """Least effective sample size of an action shown, as a share of the decisions that could
    take it.
    """
    max_weight: float
    """Largest 1 / propensity seen."""
    missingness: float
    """Share of the decisions without outcome."""
    worst_case_bounds: WorstCase
    """Mean reward if all missing outcomes were the worst, or the best."""


Interval = TypedDict("Interval", {"from": "str | None", "to": "str | None"})


class InvitationAsked(TypedDict):
    status: Literal["accepted"]
    """A mail is on its way to the address, if it can be."""


class Invoice(TypedDict):
    id: str
    """The document's id."""
    number: str
    """Its number; numbers have no gaps."""
    kind: Literal["invoice", "credit_note"]
    """A credit note takes back what an invoice charged; its amounts are negative."""
    status: Literal["open", "paid", "void", "issued"]
    """Of an invoice: open, paid, or void when credit notes took all of it back. Of a credit
    note: issued.
    """
    currency: str
    """ISO 4217 code."""
    billed_to: dict[str, str]
    """Name and e-mail address of the account when it was issued."""
    lines: list[Line]
    subtotal_cents: int
    """Sum of the lines."""
    total_cents: int
    """What it charges; no tax is added."""
    credited_cents: int
    """What credit notes took back of it."""
    period_start: str
    """First instant of the period it closes or changes (ISO 8601)."""
    period_end: str
    """First instant after it."""
    issued_at: str
    """When it was issued."""
    paid_at: str | None
    """When it was paid; null: not yet."""
    credited_invoice_id: str | None
    """Of a credit note: the invoice it corrects."""
    html_url: str
    """The same as a page to print."""
    payment_url: str | None
    """Where to pay it, when a payment provider collects it."""


class ItemError(TypedDict):
    code: str
    """An error code of the API."""
    message: str
    """What is wrong with the item."""


class JobView(TypedDict):
    job_id: str
    """The job's id."""
    status: Literal["queued", "processing", "completed", "failed"]
    """Where it stands."""
    progress: float
    """0 to 1."""
    created_at: str
    """When it was accepted (ISO 8601)."""
    started_at: str | None
    """When its first attempt began (ISO 8601)."""
    finished_at: str | None
    """When it ended (ISO 8601)."""
    attempts: int
    """Attempts so far."""
    result: dict[str, Any] | None
    """What it did; for an indexing job the counts `indexed` and `skipped`."""
    error: str | None
    """Why it failed, or why the last attempt did."""


class KeyShare(TypedDict):
    api_key_id: str | None
    """The API key; null: access tokens, and work in the background."""
    requests: int
    """Requests made with it."""
    credits: int
    """Credits they cost."""


class KeyUsage(TypedDict):
    requests: int
    """Requests made with the key."""
    credits: int
    """Credits they cost."""


class Latencies(TypedDict):
    since: str
    """First instant of the first hour (ISO 8601, UTC)."""
    total: Latency
    """Of all operations."""
    by_operation: list[OperationLatency]
    """By operation, the most asked first."""
    by_hour: list[HourLatency]
    """By hour, oldest first; those with requests."""


class Latency(TypedDict):
    requests: int
    """Requests that were let in."""
    client_errors: int
    """Of these, those answered with 4xx."""
    server_errors: int
    """Of these, those answered with 5xx, or not at all."""
    error_share: float
    """Share of both among the requests, 0 to 1."""
    mean_ms: float
    """Mean milliseconds."""
    p50_ms: float
    """Half were answered within so many milliseconds."""
    p95_ms: float
    """95 of 100 were answered within so many milliseconds."""
    p99_ms: float
    """99 of 100 were answered within so many milliseconds."""


class LeftOut(TypedDict):
    """Sentences that no memory holds, by reason."""

    greeting: int
    """They greet, or part."""
    acknowledgement: int
    """They agree, thank or decline."""
    reaction: int
    """They only react to what was said."""
    question: int
    """They ask, and tell nothing."""
    duplicate: int
    """Their turn was known."""
    other: int
    """They say nothing else to be kept."""


class Line(TypedDict):
    description: str
    """What is charged."""
    quantity: float
    """How much of it: credits, thousands of credits where one costs a fraction of a cent, or
    months (a share of one, when prorated).
    """
    unit_cents: int
    """Price of one, in cents."""
    amount_cents: int
    """Quantity times price, rounded once."""
    period_start: str
    """First instant of the time it is for (ISO 8601)."""
    period_end: str
    """First instant after it."""


class LineOutcome(TypedDict):
    """A line of the answer: what became of a line, or, as the last one, the summary."""

    line: NotRequired[int | None]
    """The line's number, from 1; empty lines are not counted."""
    status: NotRequired[str | None]
    """`created` or `failed`."""
    id: NotRequired[str | None]
    """The memory's id; null when it failed."""
    processing_status: NotRequired[Literal["processing", "completed", "failed"] | None]
    """`completed` when it is searchable."""
    error: NotRequired[ItemError | None]
    """Why it failed."""
    summary: NotRequired[ImportSummary | None]
    """On the last line alone."""


class ListedApiKey(TypedDict):
    id: str
    """The key's id; delete it under this."""
    name: str
    """What the key is for."""
    prefix: str
    """The first characters of the key, to recognise it by."""
    scopes: list[Literal["read", "write", "admin"]]
    """What the key may do."""
    created_at: str
    """When it was minted (ISO 8601)."""
    expires_at: str | None
    """When it stops working; null: never."""
    last_used_at: str | None
    """When it was last used (ISO 8601); null: never."""
    usage: KeyUsage
    """What it was used for."""


class ListedSession(TypedDict):
    id: str
    """The session's id; end it under this."""
    agent: str
    """The User-Agent that it was begun with."""
    address: str
    """Where its last request came from."""
    created_at: str
    """When it was begun (ISO 8601)."""
    last_seen_at: str
    """When its last request came (ISO 8601)."""
    expires_at: str
    """When it ends by itself (ISO 8601)."""
    current: bool
    """Whether it is the one that asks."""


class Load(TypedDict):
    """Figures of the last one or two minutes."""

    seconds: float
    """Of how many seconds, up to now, the figures are."""
    requests: int
    cores: float
    """Cores of the shard that worked for the account, on average: the three below, by the
    time.
    """
    read_ms: float
    """Time of threads for searches and wide reads."""
    write_ms: float
    """Time of the shard's writer, without commits."""
    other_ms: float
    """Time of threads for jobs, and for what is taken apart or loaded."""
    waited_ms: float
    """Time that its requests waited for turns, all together."""
    embedded_chars: int
    """Characters that the embedding model was given."""
    resident_bytes: int
    """What of the account is in the shard's memory."""


class LoggedDecision(TypedDict):
    id: str
    decision_type: str
    description: str
    outcome: Literal["success", "failure", "partial"] | None
    context: dict[str, Any]
    collection_id: str | None
    created_at: str


class MemoriesFound(TypedDict):
    items: list[Memory]
    """Newest first."""
    total_count: int
    """How many memories match."""


class Memory(TypedDict):
    id: str
    """The memory's id."""
    content: str
    """Its text, as it was sent."""
    collection_id: str
    """The collection it belongs to."""
    importance: float
    """How much it matters, 0 to 1."""
    tier: Literal["short_term", "long_term", "archived"]
    """How close at hand it is kept."""
    title: str | None
    """A short name."""
    tags: list[str]
    """Labels."""
    source: str | None
    """Where it comes from."""
    source_type: str
    """What kind of source that is."""
    kind: Literal["episodic", "semantic", "document", "file", "note"]
    """What it is, by its source: what was told in a conversation, a fact that was read in it,
    a passage of a document, a file of an agent's memory folder, or any other text.
    """
    source_reference: str | None
    """A reference into the source."""
    metadata: dict[str, Any]
    """Free JSON object."""
    user_id: str | None
    """The caller's end user."""
    agent_id: str | None
    """The agent that remembers."""
    run_id: str | None
    """The run or conversation."""
    app_id: str | None
    """The application."""
    session_id: str | None
    """The session it was said in."""
    speaker: str | None
    """Who said it."""
    role: Literal["user", "assistant", "system", "tool"] | None
    """As what it was said in a chat with an assistant."""
    occurred_at: str
    """When what it tells happened (ISO 8601)."""
    created_at: str
    """When it was stored (ISO 8601)."""
    updated_at: str
    """When its current version was stored (ISO 8601)."""
    version: int
    """Counts its versions, from 1; the ETag."""
    access_count: int
    """How often searches returned it, as last written down."""
    last_accessed_at: str | None
    """When one last did (ISO 8601)."""
    processing_status: Literal["processing", "completed", "failed"]
    """`completed` exactly when it is searchable."""
    searchable: bool
    """Whether searches find it."""
    status_url: str
    """Where to ask again."""
    outbox_event_id: str
    """The event of its current version."""
    conflict_status: Literal["none", "superseded"]
    """Whether a newer memory has taken its place."""
    superseded_by_id: str | None
    """That newer memory."""
    expires_at: str | None
    """When it ceases to be readable (ISO 8601); null: never."""


class MemoryCreated(TypedDict):
    id: str
    """The memory's id."""
    version: int
    """Its version, from 1."""
    content: str
    """Its text; empty once the memory has been deleted."""
    collection_id: str
    """The collection it belongs to."""
    importance: float
    """0 to 1."""
    created_at: str
    """When it was stored (ISO 8601)."""


class MemoryDeleted(TypedDict):
    id: str
    """The memory's id."""
    version: int
    """One above its last version."""
    collection_id: str
    """The collection it belonged to."""
    deleted_at: str
    """When it ceased to be readable (ISO 8601)."""


class MemoryJob(TypedDict):
    job_id: str
    """The job's id."""
    status: Literal["queued", "processing", "completed", "failed"]
    """Where it stands."""
    progress: float
    """0 to 1."""
    created_at: str
    """When it was accepted (ISO 8601)."""
    started_at: str | None
    """When its first attempt began (ISO 8601)."""
    finished_at: str | None
    """When it ended (ISO 8601)."""
    attempts: int
    """Attempts so far."""
    result: dict[str, Any] | None
    """What it did; for an indexing job the counts `indexed` and `skipped`."""
    error: str | None
    """Why it failed, or why the last attempt did."""
    kind: Literal["memories.index", "memories.process", "documents.process"]
    """What it does."""


class MemoryOutput(TypedDict):
    output: str
    """What to tell the agent."""
    path: str
    """The file or directory, where it is now."""
    memory_id: str | None
    """The memory that is the file; null for directories and what was deleted."""
    version: int | None
    """That memory's version."""
    processing_status: Literal["processing", "completed", "failed"] | None
    """Of a file that was changed: `completed` exactly when it is searchable."""
    searchable: bool | None
    """Of a file that was changed: whether searches find its text."""
    status_url: str | None
    """Of a file that was changed: where to ask again."""
    outbox_event_id: str | None
    """Of a file that was changed: the event of its current version."""


class MemoryUpdated(TypedDict):
    id: str
    """The memory's id."""
    version: int
    """Its version, from 1."""
    content: str
    """Its text; empty once the memory has been deleted."""
    collection_id: str
    """The collection it belongs to."""
    importance: float
    """0 to 1."""
    created_at: str
    """When it was stored (ISO 8601)."""
    updated_at: str
    """When this version was stored (ISO 8601)."""


class MemoryUse(TypedDict):
    injected_ids: list[str]
    """Memories that were put in."""
    abstain_recommended: bool
    """Whether memory holds no good evidence about the last message."""
    degraded: bool
    """Whether a part of memory could not be asked."""


class Merged(TypedDict):
    keep: str
    """The memory that stays."""
    superseded: list[str]
    """Memories it now stands for."""


class MergedEntity(TypedDict):
    id: str
    """The entity's id; it never changes."""
    name: str
    """Its name, as first written."""
    normalized_name: str
    """NFKC, case-folded, white space collapsed: what names are compared by."""
    type: str
    """What it is; `unknown` when nobody said."""
    aliases: list[str]
    """Further names."""
    attributes: dict[str, Any]
    """Free JSON object."""
    mention_count: int
    """Memories that mention it."""
    first_seen_at: str
    """When it was first spoken of (ISO 8601)."""
    last_seen_at: str
    """When it was last spoken of (ISO 8601)."""
    collection_id: str | None
    """The collection it belongs to."""
    relationships_moved: int
    """Relationships it got; those between the two are gone."""
    mentions_moved: int
    """Mentions by memories that it got."""
    complete: bool
    """Whether the other one is gone; where not, the rest waits for the next merge."""
    primary: Primary
    replica_delivery: ReplicaDelivery


class Message(TypedDict):
    role: str
    """Who speaks, such as `user` or `assistant`."""
    content: str
    """The text to remember, 1 to 100,000 characters."""
    name: NotRequired[str | None]
    """The speaker's name; the role stands in for it."""


class MetadataBoost(TypedDict):
    field: str
    """Path in the metadata, keys joined by dots."""
    value: NotRequired[str | bool | int | float | None]
    """The value it must have; of a list, one of its values."""
    weight: float
    """What a memory gains that has it."""


class Metrics(TypedDict):
    active_version: int
    """The version in use; 0 is the defaults."""
    versions: list[TrainedVersion]
    """Newest first."""


class MintedApiKey(TypedDict):
    id: str
    """The key's id; delete it under this."""
    name: str
    """What the key is for."""
    prefix: str
    """The first characters of the key, to recognise it by."""
    scopes: list[Literal["read", "write", "admin"]]
    """What the key may do."""
    created_at: str
    """When it was minted (ISO 8601)."""
    expires_at: str | None
    """When it stops working; null: never."""
    key: str
    """The key itself. It is shown this once."""


class MissingCounts(TypedDict):
    count: int


class NewFact(TypedDict):
    key: str
    """What it is about, such as `diet`."""
    value: str
    """What is so."""


class Newer(TypedDict):
    id: str
    content: str
    speaker: str | None
    occurred_at: str


class Observation(TypedDict):
    metric_key: str
    """Name of a metric."""
    value: float | bool
    """A number inside the reward range, or true and false for 1 and 0."""
    confidence: NotRequired[float | None]
    """How sure the source is."""
    source: NotRequired[str | None]
    """Who says so."""
    is_final: NotRequired[bool | None]
    """Whether nothing more is expected of this metric."""
    corrects: NotRequired[str | None]
    """The observation it takes the place of."""
    idempotency_key: NotRequired[str | None]


class OperationLatency(TypedDict):
    requests: int
    """Requests that were let in."""
    client_errors: int
    """Of these, those answered with 4xx."""
    server_errors: int
    """Of these, those answered with 5xx, or not at all."""
    error_share: float
    """Share of both among the requests, 0 to 1."""
    mean_ms: float
    """Mean milliseconds."""
    p50_ms: float
    """Half were answered within so many milliseconds."""
    p95_ms: float
    """95 of 100 were answered within so many milliseconds."""
    p99_ms: float
    """99 of 100 were answered within so many milliseconds."""
    operation: str
    """Name of the operation, such as `memories.create`."""


class OperationShare(TypedDict):
    operation: str
    """Name of the operation, such as `memories.create`."""
    count: int
    """Requests."""
    credits: int
    """Credits they cost."""


class Outcome(TypedDict):
    observation_id: str
    metric_key: str
    value: float
    confidence: float | None
    """How sure the source is, as reported; kept, not interpreted."""
    source: str | None
    is_final: bool
    corrects: str | None
    """The observation it takes the place of."""
    at: str


class OutcomeRecorded(TypedDict):
    decision_id: str
    observation_ids: list[str]
    """Of this report, in order."""
    status: Literal["pending", "final", "corrected"]
    composite_reward: float | None
    outcome_count: int
    """Observations of the decision so far."""
    evidence_revision: int
    """The policy's version after this report."""
    replayed: bool


class Outdated(TypedDict):
    start: int
    """First code point of what has been superseded."""
    end: int
    """The code point after its last."""
    fact_id: str
    """The memory of the fact that was read in it."""
    superseded_by: Newer | None
    """The memory of what was said since."""


class Part(TypedDict):
    records: list[Record]
    """Records of this part, in the order of the export."""
    next_cursor: str | None
    """Pass it as `cursor` to get the next part; null on the last one."""
    has_more: bool
    """Whether more parts follow."""


class Path(TypedDict):
    memory_id: str
    """The result."""
    hops: list[Hop]
    """From an entity that was asked for; empty when the memory mentions that itself, or what a
    memory mentions that does.
    """


class PendingChange(TypedDict):
    tier: str
    """The tier it will be."""
    effective_at: str | None
    """When (ISO 8601); null: as soon as the invoice is paid, within this month."""
    invoice_id: str | None
    """The invoice that an upgrade waits for."""


class Policy(TypedDict):
    policy_key: str
    """Which policy."""
    policy_version: int
    """How often its evidence has changed."""
    decisions: int
    """Decisions made under it."""
    outcomes: int
    """Of these, how many have an outcome."""
    created_at: str
    """When its first decision was made (ISO 8601)."""
    last_decision_at: str | None
    """When its latest was; null when all were deleted with their collections."""


class Posterior(TypedDict):
    mean: float
    credible_interval_90: list[float]
    """5 % and 95 % quantiles of the action's mean reward."""
    distribution: BetaParameters | StudentParameters
    """beta for rewards between 0 and 1; else Student's t, cut to the reward range."""


class Primary(TypedDict):
    status: Literal["committed"]
    """It is on disk."""
    read_after_write: Literal[True]
    """The next read sees it."""
    sequence: int
    """Number of the commit."""


class Profile(TypedDict):
    user_id: str | None
    name: str | None
    timezone: str | None
    language: str | None
    bio: str | None
    static: list[Fact]
    """What stays: set facts first, then derived ones, latest first."""
    dynamic: list[Fact]
    """What passes: plans, occupations of the moment."""
    sections: list[ProfileSection]
    """The facts of both lists by what they are about, with former ones apart; sections without
    a fact are left out.
    """
    updated_at: str | None
    """When something about it last changed (ISO 8601); null: never."""
    memory_count: int
    """Readable memories of this user."""


class ProfileSection(TypedDict):
    name: Literal[
        "who",
        "where",
        "work",
        "people",
        "health_and_diet",
        "likes_and_dislikes",
        "plans",
        "habits",
        "possessions",
        "dates",
    ]
    current: list[Fact]
    """What holds, set facts first, then latest first."""
    former: list[Fact]
    """What held once: replaced by a later value, or said to hold no more."""


class RankingCounts(TypedDict):
    count: int
    mean_absolute_rank_error: float | None
    """Mean distance of the actual rank from the expected; null without any."""


class RawMemory(TypedDict):
    """A memory to store as it is."""

    collection_id: NotRequired[str | None]
    """The collection it belongs to; the default one when absent."""
    user_id: NotRequired[str | None]
    """The caller's end user."""
    agent_id: NotRequired[str | None]
    """The agent that remembers."""
    run_id: NotRequired[str | None]
    """The run or conversation."""
    app_id: NotRequired[str | None]
    """The application."""
    importance: NotRequired[float | None]
    """How much it matters, 0 to 1."""
    metadata: NotRequired[Mapping[str, Any] | None]
    """Free JSON object, at most 16 KiB."""
    title: NotRequired[str | None]
    tags: NotRequired[Sequence[str] | None]
    """Labels to filter by."""
    source: NotRequired[str | None]
    """Where it comes from, such as `slack`."""
    source_type: NotRequired[str | None]
    """What kind of source that is."""
    source_reference: NotRequired[str | None]
    """A reference into the source, such as a URL."""
    session_id: NotRequired[str | None]
    """The session it was said in; run_id when absent."""
    speaker: NotRequired[str | None]
    """Who said it."""
    role: NotRequired[Literal["user", "assistant", "system", "tool"] | None]
    """As what it was said in a chat with an assistant; a message's own role."""
    occurred_at: NotRequired[datetime | str | None]
    """When what it tells happened; now when absent."""
    expires_at: NotRequired[datetime | str | None]
    """When it ceases to be readable; never when absent."""
    wait_for_index: NotRequired[bool | None]
    """Wait up to 30 seconds for it to be searchable."""
    content: str
    """The text to remember, 1 to 100,000 characters."""


class ReasonReply(TypedDict):
    query: str
    answer: str | None
    """null when nothing stored supports an answer."""
    engine: Literal["llm", "extractive"]
    model: str | None
    """The language model asked, null with the extractive engine."""
    sources: list[Source]
    """What the answer was made from, best first."""
    citations: list[Citation]
    """Verbatim quotations the answer rests on, best first. An extractive answer is the first;
    the others are the best sentences of further memories.
    """
    steps: NotRequired[list[Step] | None]
    """With `include_steps`."""
    usage: TokenUsage
    no_match: bool
    abstain_recommended: bool
    abstain_reason: NotRequired[
        Literal[
            "no_match",
            "weak_evidence",
            "subject_conflict",
            "low_confidence",
            "no_answer_found",
            "unsupported",
        ]
        | None
    ]
    query_confidence: float
    grounding: Grounding
    evidence_ids: list[str]
    safety_contract_version: str
    scores_calibrated: bool
    degraded: bool
    degraded_reasons: list[str]


class ReceivedOfFeedback(TypedDict):
    id: str
    """The feedback's id."""
    kind: Literal["relevance", "ranking", "missing"]
    created_at: str


class RecencyBoost(TypedDict):
    half_life_days: float
    """Age at which half of the weight is left."""
    weight: float
    """What a memory of this moment gains."""


class Record(TypedDict):
    """One line of an export."""

    kind: str
    """What the record is, such as `memory`."""
    record: dict[str, Any]
    """The record itself."""


class Relationship(TypedDict):
    id: str
    """The relationship's id; it never changes."""
    source: EntityName
    """The subject."""
    type: str
    """The predicate."""
    target: EntityName
    """The object."""
    attributes: dict[str, Any]
    """Free JSON object."""
    confidence: float
    """How sure it is, 0 to 1."""
    valid_from: str | None
    """Since when it holds (ISO 8601); null: always."""
    valid_to: str | None
    """Until when, exclusive (ISO 8601); null: open."""
    recorded_at: str
    """When we learned it (ISO 8601)."""
    invalidated_at: str | None
    """When we learned that it was wrong (ISO 8601)."""
    source_memory_id: str | None
    """The memory that first said so."""
    functional: bool
    """Whether a subject has one such target at a time."""


class RelevanceCounts(TypedDict):
    count: int
    relevant: int
    precision: float | None
    """Share of the relevant ones; null without any."""


class RelevantCorrection(TypedDict):
    id: str
    """The correction's id."""
    memory_id: str
    """The memory that holds the corrected content."""
    superseded_memory_id: str | None
    """The memory it took the place of."""
    corrected_content: str
    correction_type: Literal["preference", "factual", "procedural"]
    original_content: str | None
    context: str | None
    collection_id: str
    user_id: str | None
    agent_id: str | None
    confidence: float
    metadata: dict[str, Any]
    created_at: str
    searchable: bool
    processing_status: Literal["processing", "completed", "failed"]
    status_url: str
    outbox_event_id: str
    score: float
    """How near it is to the query, 0 to 1."""


class RelevantCorrections(TypedDict):
    items: list[RelevantCorrection]
    """Nearest first."""
    total_count: int
    """How many are near enough."""


class ReplayResult(TypedDict):
    id: str
    """The delivery's id."""
    status: Literal["replayed", "under_way", "refused", "not_found", "forbidden"]
    """refused: its webhook is disabled, or what it tells of was deleted."""


class Replayed(TypedDict):
    replayed: int
    """Deliveries that begin anew."""
    has_more: bool
    """Whether more of the range is left; ask again."""
    results: list[ReplayResult]
    """One entry for each id; for a range, for each that was replayed."""


class ReplicaDelivery(TypedDict):
    status: Literal["not_configured", "pending", "delivered"]
    """Whether copies elsewhere have it."""
    outbox_event_id: str
    """The event of this change."""


class Requests(TypedDict):
    used: int
    """Authenticated requests since the period began."""
    refused: int
    """Requests that a limit refused; they cost nothing and count nowhere else."""


class ResetAsked(TypedDict):
    status: Literal["accepted"]
    """If the address has an account, it is sent a ticket."""


class Resolution(TypedDict):
    kept: str
    """Id of the relationship to go by."""
    reason: str
    """Why."""


class Room(TypedDict):
    memories: int
    """Memories; -1 is unlimited."""
    documents: int
    """Documents; -1 is unlimited."""
    entities: int
    """Entities; -1 is unlimited."""
    collections: int
    """Collections; -1 is unlimited."""
    profiles: int
    """Profiles of end users; -1 is unlimited."""
    file_bytes: int
    """Bytes of the documents' files and of their texts; -1 is unlimited."""
    text_bytes: int
    """Bytes of the memories' texts and of their earlier versions; -1 is unlimited."""


class RotatedWebhook(TypedDict):
    id: str
    """The webhook's id."""
    url: str
    """Where it delivers to."""
    events: list[
        Literal[
            "memory.created",
            "memory.updated",
            "memory.deleted",
            "memory.tier_changed",
            "document.created",
            "document.processed",
            "document.failed",
            "document.deleted",
            "collection.created",
            "collection.updated",
            "search.completed",
            "user.feedback_received",
            "rl.training_started",
            "rl.training_completed",
            "rl.training_failed",
            "billing.suspended",
            "billing.resumed",
        ]
    ]
    """The kinds of events it takes."""
    description: str | None
    """What it is for."""
    status: Literal["active", "disabled"]
    """A disabled webhook delivers nothing; its events are kept as skipped."""
    disabled_reason: str | None
    """Why it is disabled."""
    created_at: str
    """When it was created (ISO 8601)."""
    updated_at: str
    """When it was last changed (ISO 8601)."""
    last_delivery_at: str | None
    """When it last took an event with a 2xx."""
    failure_count: int
    """Failed attempts since then."""
    signing_secret: str
    """Verifies deliveries. It is shown this once."""
    previous_secret_expires_at: str
    """Until when the secret before signs as well (ISO 8601)."""


class ScopeFound(TypedDict):
    kind: Literal["user", "agent", "app", "run"]
    """What it names: `user` stands for user_id, and so on."""
    name: str
    """The name that its memories were given."""
    memory_count: int
    """Memories that can be read now, superseded ones aside."""
    first_memory_at: str
    """When the oldest of them was stored (ISO 8601)."""
    last_memory_at: str
    """When the newest of them was stored (ISO 8601)."""


class ScopesFound(TypedDict):
    items: list[ScopeFound]
    """The latest to appear first."""
    total_count: int
    """How many there are."""


class SearchCompleted(TypedDict):
    id: str
    """The request's id, as in X-Request-ID."""
    query_hash: str
    """Equal for equal queries of this account; the query cannot be told from it."""
    search_type: str
    """hybrid, vector, bm25 or graph."""
    result_count: int
    """Results on the page that was returned."""
    top_ids: list[str]
    """Ids of these results, best first."""
    no_match: bool
    """Nothing stored answers the query."""
    took_ms: float
    """How long it took."""


class SearchReply(TypedDict):
    query: str
    results: list[Hit]
    total: int
    """How many memories passed the threshold, before offset and limit, of those that were
    looked at: each channel proposes `search.candidates`, or as many as offset and limit ask
    for where that is more, 1,000 at most.
    """
    search_type: str
    processing_time_ms: float
    no_match: bool
    """Nothing stored stands as an answer; there are no results then."""
    abstain_recommended: bool
    """Better not to answer from these results."""
    abstain_reason: NotRequired[Literal["no_match", "weak_evidence", "subject_conflict"] | None]
    """Why. subject_conflict: what the query asks of one speaker fits another one better."""
    query_confidence: float
    """0 to 1; how likely the results hold an answer. It ranks queries; it is no probability."""
    grounding: Grounding
    evidence_ids: list[str]
    safety_contract_version: str
    scores_calibrated: bool
    """Always false: scores rank, they are no probabilities."""
    ranking_profile: NotRequired[Literal["ranking", "ranking_notes", "ranking_fast"] | None]
    """With `explain`: the section of the settings whose weights were used."""
    reranker_applied: bool
    degraded: bool
    """Whether a channel was missing; degraded_reasons says which."""
    degraded_reasons: list[str]
    query_entities: list[str]


class Secret(TypedDict):
    secret: str
    """The secret, base32. It is shown this once."""
    otpauth_uri: str
    """The same for an authenticator app, as a QR code shows it."""


class SentRecord(TypedDict):
    kind: str
    """What the record is."""
    record: Mapping[str, Any]
    """The record, as it was exported."""


class Session(TypedDict):
    access_token: str
    """A bearer credential with all scopes."""
    token_type: Literal["bearer"]
    """Send it as `Authorization: Bearer <access_token>`."""
    expires_in: int
    """Seconds until the token expires."""
    user_id: str
    """The account's id."""
    email: str
    """The normalised e-mail address."""
    full_name: str
    """The account holder's name."""


class SessionsEnded(TypedDict):
    ended: int
    """How many sessions ended."""


class ShardCount(TypedDict):
    open: int
    """Shards that answer."""
    total: int
    """Shards this installation has."""


class SimilarDecision(TypedDict):
    id: str
    decision_type: str
    description: str
    outcome: Literal["success", "failure", "partial"] | None
    context: dict[str, Any]
    collection_id: str | None
    created_at: str
    score: float
    """How near it is to the query, 0 to 1."""


class SimilarDecisions(TypedDict):
    items: list[SimilarDecision]
    """Nearest first."""
    total_count: int
    """How many are near enough."""


class Source(TypedDict):
    memory_id: str
    content: str
    score: float
    """Its score in the search."""


class SourceMemory(TypedDict):
    memory_id: str
    """The memory's id."""
    content: str
    """Its text."""
    occurred_at: str
    """When what it tells happened (ISO 8601)."""


class StaleMemory(TypedDict):
    id: str
    """The memory's id."""
    content: str
    """Its text."""
    reason: Literal["archived", "never_used"]
    """Why it is stale."""
    created_at: str
    """When it was stored (ISO 8601)."""


class Standing(TypedDict):
    """What the events billing.suspended and billing.resumed say."""

    id: str
    """The invoice that was open for too long."""
    number: str
    """Its number."""
    status: Literal["suspended", "active"]
    """The subscription's status now."""


class StatementCounts(TypedDict):
    seen: int
    """Sentences of the messages that were read."""
    kept: int
    """Of these, those that a memory made by this job holds."""
    facts: int
    """Of these, those that facts were found in."""
    left_out: LeftOut
    """The rest, by why no new memory holds them."""


class Stats(TypedDict):
    relevance: RelevanceCounts
    ranking: RankingCounts
    missing: MissingCounts
    by_day: list[DayCounts]
    """The last 30 days with feedback, newest first."""


class Step(TypedDict):
    kind: Literal["search", "rephrase", "answer", "check"]
    detail: str
    results: NotRequired[int | None]
    """How many results a search had."""
    confidence: NotRequired[float | None]
    """query_confidence of a search."""


class StoreReceipt(TypedDict):
    store: str
    """A table, an index, or another place where data lies."""
    outcome: Literal["erased", "retained"]
    """What became of it."""
    count: int | None
    """How many rows were erased; null for what is retained."""
    reason: str | None
    """Why it is retained."""


class Stored(TypedDict):
    memories: int
    """Memories."""
    documents: int
    """Documents."""
    entities: int
    """Entities of the knowledge graph."""
    collections: int
    """Collections, without the default one."""
    profiles: int
    """Profiles of end users, those that were derived included; one that was deleted counts
    while there are memories of its user.
    """
    file_bytes: int
    """Bytes of the documents' files, each content once, and of the texts read out of them."""
    text_bytes: int
    """Bytes of the memories' texts, tags and metadata, and of their earlier versions, until
    what was deleted is removed.
    """
    bytes: int
    """Bytes of the memories, without indexes, and of the documents' files; estimated where
    there are very many.
    """
    limits: Room
    """What the tier has room for; a write beyond it is refused, and reads go on."""


class StudentParameters(TypedDict):
    family: Literal["student_t"]
    location: float
    scale: float
    degrees_of_freedom: float
    low: float
    """Least reward there can be, where it is cut."""
    high: float
    """Greatest."""


class Subscription(TypedDict):
    id: str
    """The subscription's id."""
    tier: Tier
    status: Literal["active", "suspended"]
    """`suspended`: an invoice is overdue, and what costs credits and is no read is 403 until
    it is paid.
    """
    suspension: Suspension | None
    """Of one that is suspended: why."""
    period_start: str
    """First instant of the running month (ISO 8601, UTC)."""
    period_end: str
    """First instant of the next one."""
    pending_change: PendingChange | None
    """An upgrade that waits for its payment, or a downgrade that waits for the end of the
    period.
    """
    provider: str
    """Who collects the invoices: `manual` or `stripe`."""


class Summary(TypedDict):
    """What a create did, over all its memories."""

    results: list[WriteResult]
    """One entry per memory, in order."""
    memory_ids: list[str]
    """The same ids."""
    created_count: int
    """Memories added."""
    updated_count: int
    """Memories that took another's place."""
    skipped_count: int
    """Texts that were known already."""
    collection_id: str
    """The collection written to."""
    processing_status: Literal["processing", "completed", "failed"]
    """`completed` when all are searchable."""
    searchable: bool
    """Whether all are searchable."""
    status_url: str
    """Where to ask again: the memory, or the job of several."""
    outbox_event_id: str | None
    """The event of the first memory; null when a repeated request made none."""
    request_id: str
    """This request's id."""
    job_id: NotRequired[str | None]
    """The job that makes them searchable, while one is needed."""
    poll_url: NotRequired[str | None]
    """Where that job reports."""


class Suspension(TypedDict):
    since: str
    """Since when (ISO 8601)."""
    invoice_id: str
    """The invoice that was open for too long."""
    reason: str
    """Why, and what ends it, for people."""


class TargetAction(TypedDict):
    action_key: str
    """Name of an action."""


class TestEvent(TypedDict):
    event_id: str
    """The test event's id."""
    delivery_id: str
    """Its delivery; look at it under /v1/webhooks/{id}/deliveries/{delivery_id}."""


class Tier(TypedDict):
    name: str
    """Key of the tier."""
    display_name: str
    """What it is called."""
    price: str
    """Its price, in words."""
    price_cents: int | None
    """Its price in cents a month; null: by agreement."""
    credits: int
    """Credits a month; -1 is unlimited."""
    requests_per_minute: int
    """Requests a minute; 0 is unlimited."""
    file_bytes: int
    """Bytes of files and of their texts; -1 is unlimited."""
    text_bytes: int
    """Bytes of memories' texts, as kept; -1 is unlimited."""
    memories: int
    """Memories that may be kept; -1 is unlimited."""
    documents: int
    """Documents that may be kept; -1 is unlimited."""
    entities: int
    """Entities that may be asked for; -1 is unlimited."""
    collections: int
    """Collections that may be kept; -1 is unlimited."""
    profiles: int
    """Profiles that may be asked for; -1 is unlimited."""


class TierChanged(TypedDict):
    id: str
    """The memory's id."""
    version: int
    """Its version, from 1."""
    content: str
    """Its text; empty once the memory has been deleted."""
    collection_id: str
    """The collection it belongs to."""
    importance: float
    """0 to 1."""
    created_at: str
    """When it was stored (ISO 8601)."""
    updated_at: str
    """When it changed tier (ISO 8601)."""
    tier: str
    """The tier it is in now."""
    previous_tier: str
    """The tier it came from."""


class TokenUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class TrainedVersion(TypedDict):
    version: int
    trained_at: str
    ndcg_before: float
    """Mean NDCG@10 on the held-out queries, with the ranking in use."""
    ndcg_after: float
    """The same with what was learned."""
    promoted: bool
    reason: str


class TrainingEvent(TypedDict):
    id: str
    """The job's id."""
    job_id: str
    """The same id."""
    policy: str
    metrics: NotRequired[dict[str, float] | None]
    promoted: NotRequired[bool | None]
    error: NotRequired[str | None]


class Undone(TypedDict):
    job_id: str
    """The job."""
    deleted: int
    """Memories it had created that are now deleted."""
    restored: int
    """Memories it had superseded that hold again."""
    kept: list[str]
    """Memories it had created that stay: those whose text was edited since, and the turns that
    these rest on.
    """


class Upgraded(TypedDict):
    id: str
    """The subscription's id."""
    tier: Tier
    status: Literal["active", "suspended"]
    """`suspended`: an invoice is overdue, and what costs credits and is no read is 403 until
    it is paid.
    """
    suspension: Suspension | None
    """Of one that is suspended: why."""
    period_start: str
    """First instant of the running month (ISO 8601, UTC)."""
    period_end: str
    """First instant of the next one."""
    pending_change: PendingChange | None
    """An upgrade that waits for its payment, or a downgrade that waits for the end of the
    period.
    """
    provider: str
    """Who collects the invoices: `manual` or `stripe`."""
    invoice: Invoice
    """What the rest of the month costs more."""


class Uploaded(TypedDict):
    document: Document
    """The document."""
    job_id: str
    """The job that processes it."""
    status_url: str
    """Where to look how far it is: the document itself."""


class Usage(TypedDict):
    period_start: str
    """First instant of the period, a calendar month (ISO 8601, UTC)."""
    period_end: str
    """First instant of the next one."""
    tier: str
    """The tier of the account's plan."""
    credits: Credits
    requests: Requests
    rate_limit_per_minute: int
    """Requests per minute; -1 is unlimited."""
    by_operation: list[OperationShare]
    """By operation, the costliest first."""
    by_api_key: list[KeyShare]
    """By API key, the costliest first."""
    storage: Stored


class ValueFound(TypedDict):
    value: str | bool | int | float | None
    """A value of the field."""
    count: int
    """Memories that have it."""


class ValuesFound(TypedDict):
    items: list[ValueFound]
    """The most frequent first; of equally frequent ones, the first to appear."""
    total_count: int
    """How many distinct values there are."""


class VerificationAsked(TypedDict):
    status: Literal["accepted"]
    """If the address has an account and is not proved, it is sent a ticket."""


class Verified(TypedDict):
    email: str
    """The address that is proved."""
    email_verified: Literal[True]
    """Always true."""


class Version(TypedDict):
    version: int
    """The version's number."""
    event: Literal["ADD", "UPDATE", "SUPERSEDE", "DELETE"]
    """How it came about."""
    content: str
    """The text."""
    importance: float
    """0 to 1."""
    metadata: dict[str, Any]
    """Free JSON object."""
    at: str
    """When it was stored (ISO 8601)."""
    actor: str
    """The API key's id, the account's for an access token, or `system`; behind `imported:`
    where an export says so that this installation has not made.
    """
    reason: str | None
    """Why, where one was given."""


class Webhook(TypedDict):
    id: str
    """The webhook's id."""
    url: str
    """Where it delivers to."""
    events: list[
        Literal[
            "memory.created",
            "memory.updated",
            "memory.deleted",
            "memory.tier_changed",
            "document.created",
            "document.processed",
            "document.failed",
            "document.deleted",
            "collection.created",
            "collection.updated",
            "search.completed",
            "user.feedback_received",
            "rl.training_started",
            "rl.training_completed",
            "rl.training_failed",
            "billing.suspended",
            "billing.resumed",
        ]
    ]
    """The kinds of events it takes."""
    description: str | None
    """What it is for."""
    status: Literal["active", "disabled"]
    """A disabled webhook delivers nothing; its events are kept as skipped."""
    disabled_reason: str | None
    """Why it is disabled."""
    created_at: str
    """When it was created (ISO 8601)."""
    updated_at: str
    """When it was last changed (ISO 8601)."""
    last_delivery_at: str | None
    """When it last took an event with a 2xx."""
    failure_count: int
    """Failed attempts since then."""


class WebhookWithSecret(TypedDict):
    id: str
    """The webhook's id."""
    url: str
    """Where it delivers to."""
    events: list[
        Literal[
            "memory.created",
            "memory.updated",
            "memory.deleted",
            "memory.tier_changed",
            "document.created",
            "document.processed",
            "document.failed",
            "document.deleted",
            "collection.created",
            "collection.updated",
            "search.completed",
            "user.feedback_received",
            "rl.training_started",
            "rl.training_completed",
            "rl.training_failed",
            "billing.suspended",
            "billing.resumed",
        ]
    ]
    """The kinds of events it takes."""
    description: str | None
    """What it is for."""
    status: Literal["active", "disabled"]
    """A disabled webhook delivers nothing; its events are kept as skipped."""
    disabled_reason: str | None
    """Why it is disabled."""
    created_at: str
    """When it was created (ISO 8601)."""
    updated_at: str
    """When it was last changed (ISO 8601)."""
    last_delivery_at: str | None
    """When it last took an event with a 2xx."""
    failure_count: int
    """Failed attempts since then."""
    signing_secret: str
    """Verifies deliveries. It is shown this once."""


class WorstCase(TypedDict):
    lower: float
    upper: float


class WriteResult(TypedDict):
    id: str
    """The memory's id."""
    memory_id: str
    """The same."""
    event: Literal["ADD", "UPDATE", "NOOP"]
    """What happened to it."""
    memory: str
    """Its text."""
    processing_status: Literal["processing", "completed", "failed"]
    """`completed` when it is searchable."""


class CollectionCreatedEvent(TypedDict):
    """What a webhook is told as `collection.created`."""

    id: str
    """The event's id."""
    event_type: Literal["collection.created"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: CollectionChanged
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class CollectionUpdatedEvent(TypedDict):
    """What a webhook is told as `collection.updated`."""

    id: str
    """The event's id."""
    event_type: Literal["collection.updated"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: CollectionChanged
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class MemoryCreatedEvent(TypedDict):
    """What a webhook is told as `memory.created`."""

    id: str
    """The event's id."""
    event_type: Literal["memory.created"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: MemoryCreated
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class MemoryUpdatedEvent(TypedDict):
    """What a webhook is told as `memory.updated`."""

    id: str
    """The event's id."""
    event_type: Literal["memory.updated"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: MemoryUpdated
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class MemoryDeletedEvent(TypedDict):
    """What a webhook is told as `memory.deleted`."""

    id: str
    """The event's id."""
    event_type: Literal["memory.deleted"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: MemoryDeleted
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class SearchCompletedEvent(TypedDict):
    """What a webhook is told as `search.completed`."""

    id: str
    """The event's id."""
    event_type: Literal["search.completed"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: SearchCompleted
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class DocumentCreatedEvent(TypedDict):
    """What a webhook is told as `document.created`."""

    id: str
    """The event's id."""
    event_type: Literal["document.created"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: DocumentChanged
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class DocumentProcessedEvent(TypedDict):
    """What a webhook is told as `document.processed`."""

    id: str
    """The event's id."""
    event_type: Literal["document.processed"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: DocumentChanged
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class DocumentFailedEvent(TypedDict):
    """What a webhook is told as `document.failed`."""

    id: str
    """The event's id."""
    event_type: Literal["document.failed"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: DocumentChanged
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class DocumentDeletedEvent(TypedDict):
    """What a webhook is told as `document.deleted`."""

    id: str
    """The event's id."""
    event_type: Literal["document.deleted"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: DocumentChanged
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class BillingSuspendedEvent(TypedDict):
    """What a webhook is told as `billing.suspended`."""

    id: str
    """The event's id."""
    event_type: Literal["billing.suspended"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: Standing
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class BillingResumedEvent(TypedDict):
    """What a webhook is told as `billing.resumed`."""

    id: str
    """The event's id."""
    event_type: Literal["billing.resumed"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: Standing
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class MemoryTierChangedEvent(TypedDict):
    """What a webhook is told as `memory.tier_changed`."""

    id: str
    """The event's id."""
    event_type: Literal["memory.tier_changed"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: TierChanged
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class UserFeedbackReceivedEvent(TypedDict):
    """What a webhook is told as `user.feedback_received`."""

    id: str
    """The event's id."""
    event_type: Literal["user.feedback_received"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: FeedbackReceived
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class RlTrainingStartedEvent(TypedDict):
    """What a webhook is told as `rl.training_started`."""

    id: str
    """The event's id."""
    event_type: Literal["rl.training_started"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: TrainingEvent
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class RlTrainingCompletedEvent(TypedDict):
    """What a webhook is told as `rl.training_completed`."""

    id: str
    """The event's id."""
    event_type: Literal["rl.training_completed"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: TrainingEvent
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


class RlTrainingFailedEvent(TypedDict):
    """What a webhook is told as `rl.training_failed`."""

    id: str
    """The event's id."""
    event_type: Literal["rl.training_failed"]
    timestamp: int
    """When it happened, seconds since 1970; the same in every attempt."""
    data: TrainingEvent
    idempotency_key: str
    """The same in every attempt and replay; deduplicate by it."""


WebhookEvent = (
    CollectionCreatedEvent
    | CollectionUpdatedEvent
    | MemoryCreatedEvent
    | MemoryUpdatedEvent
    | MemoryDeletedEvent
    | SearchCompletedEvent
    | DocumentCreatedEvent
    | DocumentProcessedEvent
    | DocumentFailedEvent
    | DocumentDeletedEvent
    | BillingSuspendedEvent
    | BillingResumedEvent
    | MemoryTierChangedEvent
    | UserFeedbackReceivedEvent
    | RlTrainingStartedEvent
    | RlTrainingCompletedEvent
    | RlTrainingFailedEvent
)
