"""The bounds of what every feature needs, with the unit at the end of each name.

The bounds of one feature are in its plugin: plugins/<name>/limits.py. A loop, queue, batch, page,
body or timeout that is not in settings has its limit in one of them; nothing in the tree is
unbounded.
"""

from __future__ import annotations

# --- wire -----------------------------------------------------------------------------------------
BODY_BYTES_MAX = 10 * 1024 * 1024
PUBLIC_BODY_BYTES_MAX = 64 * 1024  # of operations that ask for no credential
SIGNED_BODY_BYTES_MAX = 256 * 1024  # of notices that are signed instead
BODIES_ARRIVING_BYTES_MAX = 256 * 1024 * 1024
JSON_DEPTH_MAX = 64
JSON_ITEMS_MAX = 100_000  # a second of the loop would parse some millions
JSON_LINES_ITEMS_MAX = 1_000_000  # of a body that has many records, which may all be there
URL_BYTES_MAX = 8 * 1024
HEADER_BYTES_MAX = 32 * 1024
REQUEST_ID_CHARS_MAX = 128
KEYS_READ_MAX = 1_024  # API keys that a gateway knows by sight
KEYS_IN_USE_MAX = 1_024  # and a shard until its next commit
TOKENS_READ_MAX = 1_024  # access tokens whose signature it has seen
IDEMPOTENCY_KEY_CHARS_MAX = 255
HEAD_READ_SECONDS_MAX = 10
BODY_READ_SECONDS_MAX = 30
BODY_SLOW_SECONDS_MAX = 10  # then it has to come in as fast as the next line says
BODY_BYTES_PER_SECOND_MIN = 4 * 1024
QUERY_FIELDS_MAX = 1_000
VALIDATION_FINDINGS_MAX = 100
HEALTH_SECONDS_MAX = 5
METRICS_KEPT_SECONDS = 1
RETRY_AFTER_SECONDS = 1
PREFLIGHT_KEPT_SECONDS = 600  # by a browser that asked whether a page may

# --- pages ----------------------------------------------------------------------------------------
PAGE_ITEMS_DEFAULT = 50
PAGE_ITEMS_MAX = 100

# --- fields that several features have ------------------------------------------------------------
NAME_CHARS_MAX = 255
DESCRIPTION_CHARS_MAX = 2_000
ID_CHARS_MAX = 255
EMAIL_CHARS_MAX = 254
AGENT_CHARS_MAX = 255

# --- accounts -------------------------------------------------------------------------------------
GUESSES_AT_ONCE = 10  # at a secret of an account from one network, before the first wait
GUESSES_FORGOTTEN_SECONDS = 3_600
GUESSED_AT_ACCOUNTS_MAX = 100_000
SESSIONS_PER_TENANT_MAX = 1_000

# --- signatures -----------------------------------------------------------------------------------
WEBHOOK_SIGNATURE_AGE_SECONDS_MAX = 300

# --- requests to addresses that users give --------------------------------------------------------
OUTBOUND_ANSWER_BYTES_MAX = 16 * 1024
OUTBOUND_ADDRESSES_TRIED_MAX = 4
OUTBOUND_CONNECT_SECONDS_MAX = 10
OUTBOUND_LOOKUP_THREADS_MAX = 512
OUTBOUND_LOOKUP_THREADS_PER_ACCOUNT_MAX = 8  # at once; one that nobody answers keeps its place
OUTBOUND_OWN_ADDRESSES_SECONDS = 10

# --- uploads --------------------------------------------------------------------------------------
UPLOAD_SECONDS_MAX = 1_800
UPLOADS_AT_ONCE_MAX = 128
UPLOADS_OF_ONE_ACCOUNT_AT_ONCE_MAX = 8
UPLOAD_HEAD_BYTES = 64 * 1024
UPLOAD_WRITE_BYTES = 256 * 1024
FORM_FIELD_BYTES_MAX = 64 * 1024
FORM_PARTS_MAX = 20
FORM_OVERHEAD_BYTES_MAX = 1024 * 1024
FILENAME_CHARS_MAX = 255

# --- idempotency ----------------------------------------------------------------------------------
REPLAY_WINDOW_SECONDS = 24 * 3600

# --- tiers: requests a minute, credits a month (-1: unlimited) ------------------------------------
# What an account of each may keep is said by the plugins that keep it: Plugin.keeps.
TIERS: dict[str, dict] = {
    "free": {
        "display_name": "Free",
        "price": "$0",
        "price_cents": 0,
        "requests_per_minute": 60,
        "credits": 1_000,
    },
    "starter": {
        "display_name": "Starter",
        "price": "$19 / month",
        "price_cents": 1_900,
        "requests_per_minute": 300,
        "credits": 25_000,
    },
    "pro": {
        "display_name": "Pro",
        "price": "$99 / month",
        "price_cents": 9_900,
        "requests_per_minute": 1_200,
        "credits": 200_000,
    },
    "scale": {
        "display_name": "Scale",
        "price": "$399 / month",
        "price_cents": 39_900,
        "requests_per_minute": 2_000,
        "credits": 1_000_000,
    },
    "enterprise": {
        "display_name": "Enterprise",
        "price": "custom",
        "price_cents": None,
        "requests_per_minute": 3_000,
        "credits": -1,
    },
}
WINDOW_SECONDS = 60

# --- usage ----------------------------------------------------------------------------------------
RESERVATION_SECONDS_MAX = 900
USAGE_WRITTEN_AFTER_SECONDS = 1.0
ACCESSES_WRITTEN_AFTER_SECONDS = (
    10.0  # each is a row rewritten; one that is noted again meanwhile costs nothing
)
USAGE_UNWRITTEN_EVENTS_MAX = 8_192
USAGE_ACCOUNTS_TOGETHER_MAX = 16  # of a write, which others wait for
ACCESSES_UNWRITTEN_MAX = 8_192
USAGE_EVENTS_KEPT_SECONDS = 2 * 24 * 3600
USAGE_HOURS_KEPT_SECONDS = 62 * 24 * 3600
USAGE_DAYS_KEPT_SECONDS = 800 * 24 * 3600
USAGE_SHARES_KEPT_SECONDS = 400 * 24 * 3600
USAGE_LATENCIES_KEPT_SECONDS = 8 * 24 * 3600
USAGE_TIMED_REQUESTS_MAX = 65_536  # under way in one shard
QUOTAS_MAX = 100_000

# --- placement and shard --------------------------------------------------------------------------
SLOTS = 4_096
BATCH_CALLS_MAX = 64
BATCH_BYTES_MAX = 1024 * 1024
BATCH_PATIENCE_SECONDS = 0.05  # then a batch of slow calls makes room for another
BATCHES_OVERDUE_MAX = 256
BATCHING_QUEUE_CALLS_MAX = 4_096
SHARD_RECOVERY_SECONDS_MAX = 10
SHARD_PROBE_SECONDS_MAX = 5
SHARD_STATUS_SECONDS_MAX = 2
GROUP_COMMIT_CALLS_MAX = 256
GROUP_COMMIT_SECONDS_MAX = 0.01  # of calls of several accounts
CALLS_TOGETHER_MAX = 32  # of one account, handled at once
CALLS_TOGETHER_IN_A_CROWD_MAX = 4  # so that others' turns come as soon as they would
DEAD_READERS_LOOKED_FOR_SECONDS = 10
ACCOUNTS_LOOKED_AT_PER_STEP = 256
JOB_PREPARE_SECONDS_MAX = 300
JOB_PUT_BACK_MS = 1_000
JOBS_WAITING_SECONDS = 60
JOB_ATTEMPTS_LOST_MAX = 8
JOBS_RETENTION_SECONDS = 7 * 24 * 3600
GROUP_JOBS_AT_ONCE = 4
GROUPS_JOBS_MAX = 256  # of all named groups together: twice what one account can keep busy
JOBS_STOP_SECONDS = 1
JOBS_HELD_SECONDS = 2
ANNOUNCEMENTS_WAITING_MAX = 1_024
WRITE_QUEUE_MAX = 8_192
SLOW_CALLS_MAX = 1_024
READ_GROUP_CALLS_MAX = 32
READ_GROUP_CALLS_CROWDED_MAX = 4  # while several accounts ask
READ_THREADS_MAX = 2
# What a read looks at before its slow work: of an account that has no more in memory on the event
# loop, and of others on threads.
LOADED_AT_ONCE_BYTES_MAX = 256 * 1024**2
LOADING_THREADS = 2
PREFETCHED_SECONDS_MAX = 0.5  # that a snapshot is open for what its read still lacks
READ_PATIENCE_SECONDS = (
    0.02  # without an end to any read while others wait, before one more thread takes some
)
# Processes that read beside a shard's own.
READER_CALLS_MAX = 64  # under way in one
READER_HEAVY_LOAD_CALLS = 4  # searches, that a heavy read counts as
ACCOUNT_WORK_ACCOUNTS_MAX = 4_096  # whose work is noted in a minute
READER_BEAT_SECONDS = 0.25  # how often each is heard at least
READER_SILENT_SECONDS = 1.0  # then what it was asked is answered elsewhere,
READER_LOST_SECONDS = 15.0  # and then it is replaced
READER_RESTART_SECONDS = 0.5  # until one that ended is replaced, and twice as long each time,
READER_RESTART_SECONDS_MAX = 60.0  # up to this
READER_UNSENT_BYTES_MAX = 64 * 1024**2  # what it has not taken yet
READER_ACCOUNT_BYTES_MAX = 256 * 1024**2  # more of an account in memory is in one process alone
READER_PROCESSES_MAX = 8  # of one shard: from there on it is the shard's own process that is busy
READER_ACCOUNTS_LARGE_MAX = 10_000  # of which that is remembered
HEAVY_READ_THREADS = 4  # that share the cores of long work, a slice each
LONG_WORK_THREADS = 2  # of what holds the interpreter most of the time
CROWDED_SECONDS = 1.0  # since another account asked
LONG_WORK_SLICE_SECONDS = 0.02  # of one account's, where others wait and it can be left
HEAVY_READ_ROWS_MAX = 1_000_000
HEAVY_READ_BYTES_MAX = 1024**3
HEAVY_READ_CPU_SECONDS_MAX = 5.0
HEAVY_READ_CHECKED_ROWS = 64  # between two looks at the clock
HEAVY_CALLS_WAITING_OF_ACCOUNT_MAX = 8  # heavy reads, or heavy writes
HEAVY_CALLS_WAITING_MAX = 256
LENGTHY_WRITES_AT_ONCE = 1
LENGTHY_WRITES_SHARE_MAX = 0.33  # of the time, while several accounts ask: then it rests,
LENGTHY_WRITES_REST_SECONDS_MAX = 0.25  # so long at most
LOOP_SLICE_SECONDS = 0.0001  # of a gateway's loop for requests that have come, between two looks
LOOP_SLICE_SECONDS_MAX = 0.001  # where what else the loop did took longer
LOOP_REST_SECONDS = 0.001  # of the loop, after as much work, while threads have requests
LOOP_STALL_SECONDS = 0.1  # a step that holds an event loop as long is counted
ITEMS_PER_LOOP_STEP = 16  # of many that are gone through on an event loop
LOOP_STEP_SECONDS = 0.0003  # of the loop, for as many of them at most
OUTBOX_RETENTION_SECONDS = 7 * 24 * 3600
EXPIRED_ROWS_SWEPT_PER_WRITE = 8
CALL_SECONDS_MAX = 120

# --- verification ---------------------------------------------------------------------------------
FINDINGS_PER_ACCOUNT_MAX = 1_000
FINDINGS_SHOWN_MAX = 20
REPAIR_ATTEMPTS_MAX = 4
MANIFEST_BYTES_MAX = 256 * 1024 * 1024

# --- process --------------------------------------------------------------------------------------
GATEWAY_REQUESTS_MAX = 1_000
# At a gateway whose answers are under way or refused: more than it takes, since it refuses by who
# sends how much, and what stands before it only by who comes last.
GATEWAY_CONNECTIONS_MAX = 1_200
GATEWAY_CALLS_MAX = 512
FRONT_DOOR_REQUESTS_WAITING_MAX = 100
FRONT_DOOR_WAIT_SECONDS_MAX = 2
FRONT_DOOR_CLIENT_SECONDS_MAX = (
    60  # more than a body may take: the gateway, which can say why, refuses first
)
FRONT_DOOR_REFUSING_MS = 50
START_SECONDS_MAX = 120
RAY_CONNECT_SECONDS_MAX = 5
STOP_SECONDS_MAX = 30
ENDING_SECONDS_MAX = 55  # of a service on Ray, in order; then by force
LISTENERS_CLOSE_SECONDS_MAX = 5
PROCESS_END_SECONDS_MAX = 5
RAY_METRICS_SECONDS = 5  # between two hand-overs to Ray's agent
TRACES_SENT_SECONDS_MAX = 2  # at the end of a process
TRACES_GATHERED_MS = 5_000  # this and the next two are OpenTelemetry's own
TRACES_BATCH_SPANS = 512
TRACES_WAITING_SPANS_MAX = 2_048
TRACES_ATTEMPTS_MAX = 6  # within the time that a collector may take
TRACES_TRIED_SECONDS = 1  # before the second attempt, and twice as long before each after it
LOG_FILE_BYTES_MAX = 64 * 1024 * 1024
REQUEST_LINES_WAITING_MAX = 20_000  # for a disk that does not take them
LAYOUT_BYTES_MAX = 64 * 1024
PLACEMENT_BYTES_MAX = 8 * 1024 * 1024
PLACEMENT_VERSIONS_KEPT = 64
PLACEMENT_ATTEMPTS_MAX = 100
SLOT_WAIT_MS_MAX = 500  # for calls to a slot that changes its shard
SLOT_FROZEN_MS_MAX = 2_000  # then its source gives the move up
SLOT_POLL_MS = 20
SLOT_PIECE_BYTES = 256 * 1024  # one piece of a slot that moves, written in one transaction
SLOT_ROWS_ERASED_PER_STEP = 2_000
SLOT_KEYS_PER_STEP = 50  # adopted or shredded in one turn of the writer; each takes an fsync
SLOT_SPAN_BYTES = 256 * 1024  # compared at once, and again where one of its rows changed
SLOT_DIGESTS_BYTES = 8 * 1024 * 1024  # of rows digested in one step
SLOT_SPANS_MAX = 256  # compared again in one step
SLOT_SPANS_SMALL = 32  # so few are left to compare in the freeze
SLOT_TAIL_ROWS_MAX = 1_000  # changed rows read at once
SLOT_TAIL_ROWS_SMALL = 100  # so few changed rows are left for the freeze
SLOT_TAIL_ATTEMPTS_MAX = 50  # before the freeze
SLOT_TAIL_STALLED_ATTEMPTS_MAX = (
    3  # of them in a row that leave no fewer rows and spans than one before
)
SLOTS_MOVED_AT_ONCE_MAX = 64  # by one move
SLOTS_REBALANCED_MAX = 512  # by one plan
MOVE_ATTEMPTS_MAX = 3
MOVE_RETRY_SECONDS = 1
MOVES_LOOKED_FOR_SECONDS = 15  # by a supervisor that has nothing to do
MOVE_FAILURES_KEPT_ENTRIES = 20
NODE_WATCH_SECONDS = 1
NODE_INSPECTION_SECONDS_MAX = 60
UNFIT_NODE_REST_SECONDS = 5  # until a node that gets no shard is inspected again
RESTORATIONS_KEPT_ENTRIES = 100

# --- inference ------------------------------------------------------------------------------------
EMBEDDED_TOKENS_MAX = 256
EMBEDDED_CHARS_MAX = 8_192
EMBEDDER_SMALL_REQUEST_TEXTS_MAX = 4
EMBEDDER_SMALL_REQUEST_CHARS_MAX = 2_048
EMBEDDER_SMALL_TURN_TEXTS_MAX = 32
EMBEDDER_YIELDS_SECONDS_MAX = 0.01
EMBEDDER_TEXT_THREADS_MAX = 2  # on one text that is alone; what more would save was not measured
EMBEDDER_ROUND_TEXTS_MAX = 128
EMBEDDER_ROUND_CHARS_MAX = 8_192  # some runs: they are tokenized while others wait
EMBEDDER_CORE_SECONDS_MAX = 0.005  # waited for a core for long texts, while none is looked after
EMBEDDER_SMALL_SHARE_MAX = 0.67  # of the time of a run, where small requests go on and on
TOKENIZED_AT_ONCE_CHARS_MAX = 256
WORDWISE_CHARS_MAX = 1_024  # of a text that is put together from the pieces of known words
WORDS_REMEMBERED_MAX = 16_384  # with their pieces: some 6 MB
EMBEDDER_TURN_TEXTS_MAX = 32  # of one large request, while others wait
EMBEDDER_RUN_TOKENS_PER_THREAD_MAX = 512
EMBEDDER_PROCESS_LOST_SECONDS = 2.0  # asked for again, before texts go without vectors
EMBEDDER_GPU_RUN_TOKENS_MAX = 1_024  # the heads that read them are on the processor all the same
SENTENCES_CHARS_MAX = 1_024  # of a text, by the multilingual model: a passage has no more
SENTENCES_AT_ONCE = 8  # texts, before others may go
EMBEDDER_PACE_SECONDS = 1.0  # over which "lately" goes
REMOTE_CONNECTIONS_MAX = 16
REMOTE_BACKOFF_SECONDS_MIN = 0.25
REMOTE_BACKOFF_SECONDS_MAX = 8.0
REMOTE_EMBEDDING_TEXTS_MAX = 128
REMOTE_EMBEDDING_ATTEMPTS_MAX = 4
REMOTE_EMBEDDING_ANSWER_BYTES_MAX = 64 * 1024 * 1024
REMOTE_READING_ATTEMPTS_MAX = 3
REMOTE_READING_ANSWER_BYTES_MAX = 16 * 1024 * 1024
RERANKED_DOCUMENT_CHARS_MAX = 4_000
RERANKER_ATTEMPTS_MAX = 3
RERANKER_ANSWER_BYTES_MAX = 1024 * 1024

# --- the log in object storage --------------------------------------------------------------------
LOG_BEHIND_RETRY_SECONDS = 2
BLOB_COPIES_PAUSE_SECONDS = 0.5
BACKLOG_LOOKED_AT_SECONDS = 0.5

# --- language model -------------------------------------------------------------------------------
COMPLETIONS_AT_ONCE_MAX = 32
COMPLETIONS_WAITING_MAX = 256
COMPLETION_RETRIES_MAX = 2
COMPLETION_BYTES_MAX = 16 * 1024 * 1024
PASSED_THROUGH_REQUESTS_MAX = 1_000
STREAM_EVENTS_MAX = 1_000_000
REPAIR_CHARS_MAX = 2_000
FLOW_SECONDS_MAX = 3_600  # that a gateway keeps its key
FLOW_KEPT_SECONDS = 30.0  # that a key is held for a flow whose gateway says nothing
FLOW_END_PAUSES_SECONDS = (0.1, 1.0, 5.0)  # between attempts
STREAM_REMEMBERED_BYTES_MAX = 4 * 1024 * 1024  # 8,192 events with a token each have 2.5 MB
UPSTREAM_MESSAGE_CHARS_MAX = 1_000
