"""Every number of specification part 8 and every bound of ours, with its unit at the end of the name.

A loop, queue, batch, page, body or timeout that is not in settings has its limit here; nothing in the tree is unbounded.
"""

from __future__ import annotations

# --- wire -------------------------------------------------------------------------------------------------------------
BODY_BYTES_MAX = 10 * 1024 * 1024
BODIES_ARRIVING_BYTES_MAX = 256 * 1024 * 1024
JSON_DEPTH_MAX = 64
URL_BYTES_MAX = 8 * 1024
HEADER_BYTES_MAX = 32 * 1024
REQUEST_ID_CHARS_MAX = 128
KEYS_READ_MAX = 1_024  # API keys that a gateway knows by sight
IDEMPOTENCY_KEY_CHARS_MAX = 255
HEAD_READ_SECONDS_MAX = 10
BODY_READ_SECONDS_MAX = 30
QUERY_FIELDS_MAX = 1_000
VALIDATION_FINDINGS_MAX = 100
HEALTH_SECONDS_MAX = 5

# --- pages and batches (specification part 8) -------------------------------------------------------------------------
PAGE_ITEMS_DEFAULT = 50
PAGE_ITEMS_MAX = 100
BATCH_ITEMS_MAX = 100
BULK_DELETE_MEMORIES_MAX = 500
LIST_OFFSET_MAX = 1_000_000_000
HISTORY_PAGES_MAX = 10  # of a memory's versions that a mount reads at once
LISTED_SCOPES_MAX = 1_000  # users, agents, applications and runs on one page
BULK_DELETE_COLLECTIONS_MAX = 100
MESSAGES_MAX = 100

# --- memories ---------------------------------------------------------------------------------------------------------
CONTENT_CHARS_MAX = 100_000
METADATA_BYTES_MAX = 16 * 1024
TITLE_CHARS_MAX = 255
TAG_CHARS_MAX = 64
TAGS_MAX = 32
SCOPE_CHARS_MAX = 255
NAME_CHARS_MAX = 255
SOURCE_CHARS_MAX = 2_048
INDEXED_INLINE_CHARS_MAX = 4_096
MEMORIES_SWEPT_PER_STEP = 100
EXPIRY_DELAY_MS = 60_000
INDEX_ATTEMPTS_MAX = 2_000
RETRY_AFTER_SECONDS = 1

# --- files of the memory tool ---------------------------------------------------------------------------------------
MEMORY_FILES_MAX = 1_000  # of one tree
MEMORY_PATH_CHARS_MAX = 1_024
MEMORY_PATH_DEPTH_MAX = 16
LINES_NAMED_MAX = 100
ECHOED_CHARS_MAX = 200

# --- collections ------------------------------------------------------------------------------------------------------
DESCRIPTION_CHARS_MAX = 2_000
ID_CHARS_MAX = 255
MEMBERSHIP_EVENTS_INTERVAL_MS = 1_000
CLEANUP_ROWS_PER_STEP = 2_000

# --- erasing, export, import ------------------------------------------------------------------------------------------
ERASED_ROWS_PER_STEP = 2_000
ERASE_ATTEMPTS_MAX = 100_000
EXPORT_RECORDS_PER_PART = 200
EXPORT_BYTES_PER_PART = 1024 * 1024
IMPORT_RECORDS_MAX = 100_000
IMPORT_RECORDS_PER_PART = 500
IMPORT_VERSIONS_MAX = 10_000

# --- search -----------------------------------------------------------------------------------------------------------
QUERY_CHARS_MAX = 8_192
SEARCH_ITEMS_DEFAULT = 10
SEARCH_ITEMS_MAX = 100
SEARCH_OFFSET_MAX = 10_000
BUDGET_TOKENS_MAX = 10_000_000
FILTER_NODES_MAX = 256
FILTER_VALUES_MAX = 4_096  # in all lists of one filter
FACETS_MAX = 16
FACET_VALUES_MAX = 100
BOOSTS_MAX = 64  # of one kind
BOOST_WEIGHT_MAX = 10
DIVERSIFIED_RESULTS_MAX = 200
RERANKED_RESULTS_MAX = 100
TEXTS_READ_MAX = 20_000  # memories whose texts one filter may read
METADATA_VALUES_INDEXED_MAX = 256  # of one memory
PASSAGE_TOKENS_MAX = 200  # by estimate; well below what the embedded model reads
PASSAGES_PER_MEMORY_MAX = 192
PASSAGES_INDEXED_PER_STEP = 256  # by one step of an index job
EMBEDDED_TOKENS_PER_REQUEST_MAX = 4_000  # by estimate; several such requests must get through within one time limit of the embedder
WORD_VECTORS_PER_MEMORY_MAX = 1_024
CANDIDATES_PER_CHANNEL_MAX = 200

# --- webhooks (specification part 8) ----------------------------------------------------------------------------------
WEBHOOKS_PER_TENANT_MAX = 32
WEBHOOK_URL_CHARS_MAX = 2_048
WEBHOOK_SECRET_CHARS_MIN = 16
WEBHOOK_SECRET_CHARS_MAX = 256
WEBHOOK_ATTEMPTS_MAX = 5
WEBHOOK_BACKOFF_SECONDS_MAX = 3_600
WEBHOOK_BACKOFF_JITTER_SHARE = 0.1  # of a wait, upward only
WEBHOOK_SIGNATURE_AGE_SECONDS_MAX = 300
WEBHOOK_GRACE_SECONDS_DEFAULT = 24 * 3600
WEBHOOK_GRACE_SECONDS_MAX = 7 * 24 * 3600
WEBHOOK_CHECK_SECONDS_MAX = 5
WEBHOOK_DELIVERIES_PENDING_MAX = 100_000
WEBHOOK_ATTEMPTS_KEPT_MAX = 50
DELIVERED_RETENTION_SECONDS = 7 * 24 * 3600
UNDELIVERED_RETENTION_SECONDS = 30 * 24 * 3600
DELIVERIES_REPLAYED_MAX = 1_000
DELIVERIES_EXAMINED_MAX = 10_000
DELIVERIES_ERASED_PER_STEP = 500

# --- requests to addresses that users give ----------------------------------------------------------------------------
OUTBOUND_ANSWER_BYTES_MAX = 16 * 1024
OUTBOUND_ADDRESSES_TRIED_MAX = 4
OUTBOUND_CONNECT_SECONDS_MAX = 10
OUTBOUND_LOOKUP_THREADS_MAX = 128

# --- outcome memory and feedback ---------------------------------------------------------------------------------------
ACTION_KEY_CHARS_MAX = 100
METRIC_KEY_CHARS_MAX = 100
CANDIDATES_MAX = 50
CANDIDATE_MEMORIES_MAX = 50
CONTEXT_BYTES_MAX = 16 * 1024
CONTEXT_CHARS_EMBEDDED_MAX = 4_096
OBSERVATIONS_PER_CALL_MAX = 100
OBSERVATIONS_PER_DECISION_MAX = 1_000
GUARDRAILS_MAX = 10
ACTIONS_ASKED_MAX = 50
ACTIONS_SHOWN_MAX = 100
DECISIONS_EVALUATED_DEFAULT = 5_000
DECISIONS_EVALUATED_MAX = 100_000
DECISIONS_COMPARED_MAX = 1_000
DECISIONS_SWEPT_PER_STEP = 100
POSTERIOR_DRAWS = 2_000
QUERY_STRING_CHARS_MAX = 2_048
SIMILAR_ITEMS_DEFAULT = 10
SIMILAR_ITEMS_MAX = 100
RANK_ITEMS_MAX = 10_000
FEEDBACK_DAYS_SHOWN_MAX = 30
TRAINING_ROWS_MAX = 5_000
TRAINING_QUERIES_MAX = 2_000
RANKING_VERSIONS_SHOWN_MAX = 100

# --- ingestion --------------------------------------------------------------------------------------------------------
FACTS_PER_JOB_MAX = 400
FACTS_PER_CHUNK_MAX = 64
MESSAGES_PER_CHUNK_MAX = 20
CHUNK_CHARS_MAX = 12_000
CHUNKS_AT_ONCE_MAX = 4
MODEL_SECONDS_MAX = 240
PROCESS_WAIT_SECONDS_MAX = 30
TWIN_TERMS_MAX = 32
TWIN_MEMORIES_MAX = 16
NEAR_MEMORIES_MAX = 8
MERGED_MEMORIES_MAX = 64  # into one
AUDIT_MEMORIES_MAX = 2_000
TIER_MEMORIES_PER_STEP = 500
RULES_CHARS_MAX = 4_096
RULES_SECONDS_MAX = 10
INSTRUCTIONS_CHARS_MAX = 2_000

# --- knowledge graph --------------------------------------------------------------------------------------------------
ALIASES_MAX = 64
ENTITY_TYPE_CHARS_MAX = 64
GRAPH_DEPTH_MAX = 5
GRAPH_ITEMS_DEFAULT = 50
GRAPH_ITEMS_MAX = 500
CLAIMS_VISITED_MAX = 20_000
CLAIMS_COMPARED_MAX = 200
CLAIMS_PER_ENTITY_READ_MAX = 1_000
SOURCES_PER_CLAIM_MAX = 64
SOURCE_MEMORIES_SHOWN_MAX = 50
ENTITIES_IN_QUERY_MAX = 8
QUERY_WORDS_READ_MAX = 40
MEMORIES_PER_ENTITY_MAX = 100
GRAPH_CLAIMS_SEARCHED_MAX = 500

# --- documents --------------------------------------------------------------------------------------------------------
UPLOAD_SECONDS_MAX = 1_800
UPLOADS_AT_ONCE_MAX = 32
UPLOAD_HEAD_BYTES = 64 * 1024
UPLOAD_WRITE_BYTES = 256 * 1024
FORM_FIELD_BYTES_MAX = 64 * 1024
FORM_PARTS_MAX = 20
FORM_OVERHEAD_BYTES_MAX = 1024 * 1024
FILENAME_CHARS_MAX = 255
BLOBS_ORPHANED_SECONDS = 3_600
BLOBS_SWEPT_PER_STEP = 1_000
DOCUMENTS_SWEPT_PER_STEP = 100
DOCUMENTS_BESIDE_MAX = 16
DOCUMENT_RESERVED_SECONDS_MAX = 7 * 24 * 3600
PARSERS_AT_ONCE_MAX = 2
PARSER_OUTPUT_BYTES_MAX = 128 * 1024 * 1024
PARSE_ATTEMPTS_MAX = 5
EXTRACTED_CHARS_MAX = 10_000_000
PAGES_MAX = 20_000
TABLE_CELLS_MAX = 2_000_000
ARCHIVE_ENTRIES_MAX = 10_000
ARCHIVE_BYTES_MAX = 512 * 1024 * 1024
ARCHIVE_RATIO_MAX = 200
XML_BYTES_MAX = 64 * 1024 * 1024
MARKUP_DEPTH_MAX = 256
CHUNK_TOKENS_MAX = 200
CHUNK_OVERLAP_TOKENS = 30
CHUNKS_MAX = 20_000
CHUNKS_PER_STEP = 64
TEXT_PIECE_CHARS = 16_384
HEADING_CHARS_MAX = 255
RECORDING_SECONDS_MAX = 24 * 3600
RECORDING_PIECE_SECONDS_MAX = 300
CUES_MAX = 200_000
PICTURES_PER_STEP = 4
PICTURE_PIXELS_MAX = 100_000_000
PICTURE_SIDE_PIXELS_MAX = 2_000
REMOTE_READING_ATTEMPTS_MAX = 3
REMOTE_READING_BACKOFF_SECONDS_MIN = 0.5
REMOTE_READING_ANSWER_BYTES_MAX = 16 * 1024 * 1024

# --- idempotency ------------------------------------------------------------------------------------------------------
REPLAY_WINDOW_SECONDS = 24 * 3600

# --- accounts ---------------------------------------------------------------------------------------------------------
PASSWORD_CHARS_MIN = 10
PASSWORD_CHARS_MAX = 1_024
PASSWORD_HASH_THREADS_MAX = 2
PASSWORD_HASHES_WAITING_MAX = 64
EMAIL_CHARS_MAX = 254
API_KEYS_PER_TENANT_MAX = 1_000

# --- tiers (specification part 8); requests per minute, credits per month (-1 is unlimited) ---------------------------
TIERS: dict[str, dict] = {
    "free": {"display_name": "Free", "price": "$0", "price_cents": 0, "requests_per_minute": 60, "credits": 1_000},
    "starter": {"display_name": "Starter", "price": "$19 / month", "price_cents": 1_900, "requests_per_minute": 300, "credits": 25_000},
    "pro": {"display_name": "Pro", "price": "$99 / month", "price_cents": 9_900, "requests_per_minute": 1_200, "credits": 200_000},
    "scale": {"display_name": "Scale", "price": "$399 / month", "price_cents": 39_900, "requests_per_minute": 2_000, "credits": 1_000_000},
    "enterprise": {"display_name": "Enterprise", "price": "custom", "price_cents": None, "requests_per_minute": 3_000, "credits": -1},
}
# Endpoint caps, requests per minute, by rate bucket (specification part 8.2).
ENDPOINT_CAPS: dict[str, int] = {"search": 30, "media": 20, "batch": 30}
WINDOW_SECONDS = 60
# What a tier must be to use a feature: the lowest tier that has it, and what to call it (specification part 7, 403).
FEATURES: dict[str, dict[str, str]] = {
    "graph_write": {"name": "Writing to the knowledge graph", "tier": "pro"},
    "graph_query": {"name": "Deep queries and contradictions of the knowledge graph", "tier": "starter"},
    "training": {"name": "Training the ranking", "tier": "pro"},
    "media": {"name": "Audio and video documents", "tier": "starter"},
}

# --- usage ------------------------------------------------------------------------------------------------------------
RESERVATION_SECONDS_MAX = 900
USAGE_WRITTEN_AFTER_SECONDS = 1.0
TALLIES_WRITTEN_AFTER_SECONDS = 10.0  # each is a row rewritten; one that is noted again meanwhile costs nothing
USAGE_UNWRITTEN_EVENTS_MAX = 8_192
TALLIES_UNWRITTEN_MAX = 8_192
USAGE_EVENTS_KEPT_SECONDS = 2 * 24 * 3600
USAGE_HOURS_KEPT_SECONDS = 62 * 24 * 3600
USAGE_DAYS_KEPT_SECONDS = 800 * 24 * 3600
USAGE_SHARES_KEPT_SECONDS = 400 * 24 * 3600
TALLIES_MAX = 100_000
ROWS_MEASURED_MAX = 10_000

# --- billing ----------------------------------------------------------------------------------------------------------
PERIODS_CLOSED_PER_STEP = 24
PAYMENT_CALL_SECONDS_MAX = 20
PAYMENT_CALL_RETRIES_MAX = 2
PAYMENT_ATTEMPTS_MAX = 12
PAYMENT_BACKOFF_MS_MAX = 6 * 3600 * 1000
SIGNATURE_AGE_SECONDS_MAX = 300
REASON_CHARS_MAX = 500
ACCOUNTS_LISTED_MAX = 500

# --- placement and shard ----------------------------------------------------------------------------------------------
SLOTS = 4_096
LANE_CALLS_MAX = 64
LANE_BYTES_MAX = 1024 * 1024
LANE_QUEUE_MAX = 4_096
LANE_RECOVERY_SECONDS_MAX = 10
LANE_PROBE_SECONDS_MAX = 5
SHARD_STATUS_SECONDS_MAX = 2
GROUP_COMMIT_CALLS_MAX = 256
JOB_PREPARE_SECONDS_MAX = 300
JOB_PUT_BACK_MS = 1_000
JOBS_WAITING_SECONDS = 60
JOB_ATTEMPTS_LOST_MAX = 8
JOBS_RETENTION_SECONDS = 7 * 24 * 3600
LANE_JOBS_AT_ONCE = 4
LANES_JOBS_MAX = 256  # of all lanes together: twice what one account can keep busy
LANE_STOP_SECONDS = 1
JOBS_HELD_SECONDS = 2
ANNOUNCEMENTS_WAITING_MAX = 1_024
WRITE_QUEUE_MAX = 8_192
SLOW_CALLS_MAX = 1_024
READ_GROUP_CALLS_MAX = 32
READ_THREADS_MAX = 2
READ_AHEAD_SECONDS_MAX = 0.05  # that a snapshot waits for what its read still lacks
READ_PATIENCE_SECONDS = 0.02  # without an end to any read while others wait, before one more thread takes some
OUTBOX_RETENTION_SECONDS = 7 * 24 * 3600
EXPIRED_ROWS_SWEPT_PER_WRITE = 8
CALL_SECONDS_MAX = 120

# --- verification -----------------------------------------------------------------------------------------------------
FINDINGS_PER_ACCOUNT_MAX = 1_000
FINDINGS_SHOWN_MAX = 20
REPAIR_ATTEMPTS_MAX = 4
TEXTS_VERIFIED_AT_ONCE_MAX = 256
MANIFEST_BYTES_MAX = 256 * 1024 * 1024

# --- process ----------------------------------------------------------------------------------------------------------
GATEWAY_REQUESTS_MAX = 1_000
GATEWAY_CALLS_MAX = 512
FRONT_DOOR_REQUESTS_WAITING_MAX = 100
FRONT_DOOR_WAIT_SECONDS_MAX = 2
FRONT_DOOR_REFUSING_MS = 50
START_SECONDS_MAX = 120
RAY_CONNECT_SECONDS_MAX = 5
STOP_SECONDS_MAX = 30
LISTENERS_CLOSE_SECONDS_MAX = 5
PROCESS_END_SECONDS_MAX = 5
LOG_FILE_BYTES_MAX = 64 * 1024 * 1024
LAYOUT_BYTES_MAX = 64 * 1024
PLACEMENT_BYTES_MAX = 8 * 1024 * 1024
PLACEMENT_VERSIONS_KEPT = 64
PLACEMENT_ATTEMPTS_MAX = 100
SLOT_WAIT_MS_MAX = 500  # for calls to a slot that changes its shard
SLOT_FROZEN_MS_MAX = 2_000  # then its source gives the move up
SLOT_POLL_MS = 20
SLOT_PIECE_BYTES = 256 * 1024  # one piece of a slot that moves, written in one transaction
SLOT_ROWS_ERASED_PER_STEP = 2_000
SLOT_TAIL_ROWS_MAX = 1_000  # changed rows read at once
SLOT_TAIL_ROWS_SMALL = 100  # so few changed rows are left for the freeze
SLOT_TAIL_ATTEMPTS_MAX = 50  # before the freeze; a slot that is written to faster than it is copied cannot move
SLOTS_MOVED_AT_ONCE_MAX = 64  # by one move
SLOTS_REBALANCED_MAX = 512  # by one plan
MOVE_ATTEMPTS_MAX = 3
MOVE_RETRY_SECONDS = 1
MOVE_FAILURES_KEPT_ENTRIES = 20
NODE_WATCH_SECONDS = 1
NODE_INSPECTION_SECONDS_MAX = 60
RESTORATIONS_KEPT_ENTRIES = 100

# --- inference --------------------------------------------------------------------------------------------------------
EMBEDDED_TOKENS_MAX = 256
EMBEDDED_CHARS_MAX = 8_192
EMBEDDER_SMALL_REQUEST_TEXTS_MAX = 4
EMBEDDER_SMALL_TURN_TEXTS_MAX = 32
EMBEDDER_GIVES_WAY_SECONDS_MAX = 0.01
EMBEDDER_ROUND_TEXTS_MAX = 128
EMBEDDER_RUN_TOKENS_PER_THREAD_MAX = 512
REMOTE_EMBEDDING_TEXTS_MAX = 128
REMOTE_EMBEDDING_ATTEMPTS_MAX = 4
REMOTE_EMBEDDING_CONNECTIONS_MAX = 16
REMOTE_EMBEDDING_BACKOFF_SECONDS_MIN = 0.25
REMOTE_EMBEDDING_BACKOFF_SECONDS_MAX = 8.0
REMOTE_EMBEDDING_ANSWER_BYTES_MAX = 64 * 1024 * 1024
RERANKED_DOCUMENT_CHARS_MAX = 4_000
RERANKER_ATTEMPTS_MAX = 3
RERANKER_CONNECTIONS_MAX = 16
RERANKER_BACKOFF_SECONDS_MIN = 0.1
RERANKER_BACKOFF_SECONDS_MAX = 1.0
RERANKER_ANSWER_BYTES_MAX = 1024 * 1024

# --- the log in object storage ----------------------------------------------------------------------------------------
LOG_BEHIND_RETRY_SECONDS = 2
BLOB_COPIES_PAUSE_SECONDS = 0.5
PAUSE_TICK_SECONDS = 0.5
PAUSE_NOTICED_SECONDS = 3
VERIFY_EPOCH_SECONDS_MAX = 5

# --- language model ---------------------------------------------------------------------------------------------------
COMPLETIONS_AT_ONCE_MAX = 32
COMPLETIONS_WAITING_MAX = 256
COMPLETION_RETRIES_MAX = 2
COMPLETION_BYTES_MAX = 16 * 1024 * 1024
PASSED_THROUGH_REQUESTS_MAX = 1_000
STREAM_EVENTS_MAX = 1_000_000
REPAIR_CHARS_MAX = 2_000
FLOW_SECONDS_MAX = 3_600
STREAM_REMEMBERED_BYTES_MAX = 1024 * 1024
UPSTREAM_MESSAGE_CHARS_MAX = 1_000
ANSWER_TOKENS_DEFAULT = 512
ANSWER_TOKENS_MAX = 8_192
ANSWER_MEMORY_TOKENS_MAX = 6_000
CHAT_MESSAGES_MAX = 2_000
CHAT_MEMORIES_MAX = 50
CHAT_MEMORY_SECONDS_MAX = 5
CHAT_MEMORY_TOKENS_MAX = 4_000

# --- profile ----------------------------------------------------------------------------------------------------------
PROFILE_REFRESH_DELAY_MS = 200
PROFILE_MEMORIES_PER_STEP = 100
FACTS_PER_PROFILE_MAX = 500
FACT_EVIDENCE_MEMORIES_MAX = 20
FACT_VALUE_CHARS_MAX = 500
GIVEN_FACTS_MAX = 100
BIO_CHARS_MAX = 2_000
DIALOGUE_TURNS_KEPT_MAX = 50
DIALOGUE_TURN_CHARS_MAX = 4_000
DIALOGUE_HYPOTHESES_MAX = 20
