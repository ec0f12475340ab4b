"""What a plugin is written in: the public vocabulary of the runtime.

A plugin is a value, `Plugin(...)`. It declares operations, each a Read,
a Write or a Flow (what it answers), Tables and indexes
(what it stores), Jobs (what it does in the background), Events (what it tells) and a few hooks.
Handlers are functions of a context, which is one tenant's view of one snapshot or of one
transaction. The names below are what nearly every plugin needs; what few need is in the modules:

    operation, context, plugin   what is declared, and what handlers are given
    jobs, outbox, steps          background work, events, and what a flow composes
    pagination, checks, mount    pages of lists, verification, subtrees of other protocols
    exporting, restoring         what an export holds, and how an import takes it in
    tenants, access_tokens       accounts and the credentials that open them
    attestation                  what this installation knows again as its own
    tiers, metering              what an account may use, and what it has used

Beside these a plugin uses runtime.errors, ids, timestamps, limits, settings, inference, outbound,
signatures and tenancy, and the types of storage. Nothing here imports the shard, the gateway or
the cluster, so a plugin cannot reach them either.
"""

from runtime.api.checks import Account, Check, Counter, Derived, Finding, IndexEntries, Pursued
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again, GiveUp
from runtime.api.mount import InProcessClient, Mount
from runtime.api.operation import (
    Body,
    Call,
    Event,
    Flow,
    Idempotency,
    Kind,
    Operation,
    Patch,
    Principal,
    Query,
    Read,
    Reply,
    StoredFile,
    Together,
    Upload,
    UploadedFile,
    View,
    Write,
)
from runtime.api.pagination import Page, PageQuery, envelope, newest_first
from runtime.api.plugin import (
    CatchUp,
    Job,
    Plugin,
    Registry,
    Retriever,
    RetryStrategy,
)
from runtime.api.restoring import Restore
from runtime.api.steps import JobSteps, Steps

__all__ = [
    "Account",
    "Again",
    "Body",
    "Call",
    "CatchUp",
    "Check",
    "Counter",
    "Derived",
    "Event",
    "Finding",
    "Flow",
    "GiveUp",
    "Idempotency",
    "InProcessClient",
    "IndexEntries",
    "Job",
    "JobSteps",
    "Kind",
    "Mount",
    "Operation",
    "Page",
    "PageQuery",
    "Patch",
    "Plugin",
    "Principal",
    "Pursued",
    "Query",
    "Read",
    "ReadContext",
    "Registry",
    "Reply",
    "Restore",
    "Retriever",
    "RetryStrategy",
    "Steps",
    "StoredFile",
    "Together",
    "Upload",
    "UploadedFile",
    "View",
    "Write",
    "WriteContext",
    "envelope",
    "newest_first",
]
