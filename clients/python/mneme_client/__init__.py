"""Mneme from Python: every operation, typed, for blocking and for `async` code. See client.py."""

from . import errors, models
from .client import AsyncMneme, Mneme
from .errors import (
    ApiError,
    ConnectionFailed,
    DeadlineExceeded,
    MnemeError,
    NotGenuine,
    ProcessingFailed,
    UnreadableAnswer,
)
from .history import Entry, History
from .listing import AsyncListing, Listing, Page
from .queries import QUERY_CHARS_MAX, searchable
from .request import UNSET
from .retries import Retries
from .streams import AsyncStream, Stream
from .webhooks import verify_webhook

__all__ = [
    "QUERY_CHARS_MAX",
    "UNSET",
    "ApiError",
    "AsyncListing",
    "AsyncMneme",
    "AsyncStream",
    "ConnectionFailed",
    "DeadlineExceeded",
    "Entry",
    "History",
    "Listing",
    "Mneme",
    "MnemeError",
    "NotGenuine",
    "Page",
    "ProcessingFailed",
    "Retries",
    "Stream",
    "UnreadableAnswer",
    "errors",
    "models",
    "searchable",
    "verify_webhook",
]
