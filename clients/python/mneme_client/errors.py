"""Everything that can go wrong, one class per kind, so that `except` can name it.

MnemeError
├── ConnectionFailed           no answer, or half of one
├── DeadlineExceeded           something did not become ready in time
├── ProcessingFailed           something became `failed` instead of ready
├── UnreadableAnswer           a success, but not as this service answers
├── NotGenuine                 a webhook request whose signature does not hold
└── ApiError                   the service answered, and not with a success
    ├── BadRequest             400 invalid_request
    ├── Unauthenticated        401
    │   ├── MissingApiKey          missing_api_key
    │   └── InvalidApiKey          invalid_api_key
    ├── PermissionDenied       403 permission_denied
    │   └── FeatureNotAvailable    feature_not_available
    ├── NotFound               404 resource_not_found
    │   └── CollectionNotFound     collection_not_found
    ├── MethodNotAllowed       405
    ├── NotAcceptable          406
    ├── Conflict               409
    ├── PreconditionFailed     412
    ├── PayloadTooLarge        413
    │   └── DocumentTooLarge       document_too_large
    ├── UriTooLong             414
    ├── UnsupportedFormat      415 unsupported_format
    ├── ValidationFailed       422 validation_error
    ├── RateLimited            429
    │   ├── RateLimitExceeded      rate_limit_exceeded
    │   └── QuotaExceeded          quota_exceeded
    ├── HeadersTooLarge        431
    └── ServerError            5xx
        ├── InternalError          500 internal_error
        ├── NotInstalled           501
        ├── UpstreamFailed         502
        ├── Unavailable            503
        └── UpstreamTimeout        504
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, ClassVar

import httpx

PASSING = (409, 429, 502, 503, 504)
GATEWAY_FAULTS = (500, 502, 503, 504)


class MnemeError(Exception):
    """Any failure that this package reports."""


class ConnectionFailed(MnemeError):
    """The service could not be reached, or the connection ended before the answer did. `__cause__`
    is httpx's own error.

    sent  whether the request may have reached the service
    """

    def __init__(self, message: str, *, sent: bool = True):
        super().__init__(message)
        self.sent = sent


class DeadlineExceeded(MnemeError):
    """What was waited for was not there in time. `last` is what the service said of it last."""

    def __init__(self, message: str, last: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.last = last


class ProcessingFailed(MnemeError):
    """What was waited for has failed for good. `last` is what the service says of it."""

    def __init__(self, message: str, last: Mapping[str, Any]):
        super().__init__(message)
        self.last = last


class UnreadableAnswer(MnemeError):
    """Something answered with a success, and not as this service does: at the address is another
    server, or something in between speaks for it. What the request asked for may have happened.
    """


class NotGenuine(MnemeError):
    """A webhook request that was not signed with this secret, or too long ago; the message says
    which.
    """


class ApiError(MnemeError):
    """An answer that is not a success.

    status       HTTP status
    code         the service's code, such as "validation_error"; None where none fits
    type         category, such as "rate_limit_error"
    message      what happened and what to do about it
    param        the offending parameter
    details      findings of a 422: [{"loc": [...], "msg": str, "type": str}]
    request_id   names the request in the service's logs
    retry_after  seconds that the service asks to wait
    body         the decoded answer, where it is JSON
    """

    statuses: ClassVar[tuple[int, ...]] = ()
    codes: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        type: str | None = None,
        param: str | None = None,
        details: list[dict[str, Any]] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        body: Any = None,
    ):
        super().__init__(message)
        self.message, self.status, self.code, self.type, self.param = (
            message,
            status,
            code,
            type,
            param,
        )
        self.details, self.request_id, self.retry_after, self.body = (
            details,
            request_id,
            retry_after,
            body,
        )

    def __str__(self) -> str:
        named = f"{self.status} {self.code}" if self.code else str(self.status)
        return (
            f"{self.message} ({named}{f', request {self.request_id}' if self.request_id else ''})"
        )

    @property
    def from_service(self) -> bool:
        """Whether the service itself said so, and not something in between."""
        return self.type is not None


class BadRequest(ApiError):
    statuses, codes = (400,), ("invalid_request",)


class Unauthenticated(ApiError):
    statuses = (401,)


class MissingApiKey(Unauthenticated):
    codes = ("missing_api_key",)


class InvalidApiKey(Unauthenticated):
    codes = ("invalid_api_key",)


class PermissionDenied(ApiError):
    statuses, codes = (403,), ("permission_denied",)


class FeatureNotAvailable(PermissionDenied):
    """The account's tier lacks the feature; `body` has `feature`, `current_tier`, `required_tier`
    and `upgrade_url`.
    """

    codes = ("feature_not_available",)


class NotFound(ApiError):
    statuses, codes = (404,), ("resource_not_found",)


class CollectionNotFound(NotFound):
    codes = ("collection_not_found",)


class MethodNotAllowed(ApiError):
    statuses = (405,)


class NotAcceptable(ApiError):
    statuses = (406,)


class Conflict(ApiError):
    """The Idempotency-Key belongs to another request, or what is stored is not what the request
    takes it for.
    """

    statuses = (409,)


class PreconditionFailed(ApiError):
    """`if_match` names another version than the stored one."""

    statuses = (412,)


class PayloadTooLarge(ApiError):
    statuses = (413,)


class DocumentTooLarge(PayloadTooLarge):
    codes = ("document_too_large",)


class UriTooLong(ApiError):
    statuses = (414,)


class UnsupportedFormat(ApiError):
    statuses, codes = (415,), ("unsupported_format",)


class ValidationFailed(ApiError):
    statuses, codes = (422,), ("validation_error",)


class RateLimited(ApiError):
    statuses = (429,)


class RateLimitExceeded(RateLimited):
    codes = ("rate_limit_exceeded",)


class QuotaExceeded(RateLimited):
    codes = ("quota_exceeded",)


class HeadersTooLarge(ApiError):
    statuses = (431,)


class ServerError(ApiError):
    """5xx."""


class InternalError(ServerError):
    statuses, codes = (500,), ("internal_error",)


class NotInstalled(ServerError):
    """The service lacks packages that the operation needs; the message has the line that installs
    them.
    """

    statuses = (501,)


class UpstreamFailed(ServerError):
    statuses = (502,)


class Unavailable(ServerError):
    """Not now. What the request asked for may have happened; the same Idempotency-Key finds out."""

    statuses = (503,)


class UpstreamTimeout(ServerError):
    statuses = (504,)


def _kinds(kind: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    yield kind
    for derived in kind.__subclasses__():
        yield from _kinds(derived)


BY_CODE: dict[str, type[ApiError]] = {
    code: kind for kind in _kinds() for code in vars(kind).get("codes", ())
}
BY_STATUS: dict[int, type[ApiError]] = {
    status: kind for kind in _kinds() for status in vars(kind).get("statuses", ())
}


def kind_of(status: int, code: str | None) -> type[ApiError]:
    """The class of an answer with this status and code. The status decides: a code known from
    elsewhere does not change it.
    """
    general = BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    exact = BY_CODE.get(code or "", general)
    return exact if issubclass(exact, general) else general


def of_response(response: httpx.Response) -> ApiError:
    """The error that an answer stands for; its body has been read."""
    try:
        body = response.json()
    except ValueError:
        body = None
    return of_body(response.status_code, body, response.headers)


def of_body(status: int, body: Any, headers: Mapping[str, str]) -> ApiError:
    """The error of a status and a decoded body: the service's envelope, its flat body of a missing
    feature, or anything else.
    """
    said = body.get("error") if isinstance(body, dict) else None
    if isinstance(body, dict) and isinstance(said, str):
        said = {"code": said, "message": body.get("message"), "type": "permission_error"}
    if not isinstance(said, dict):
        said = {}
    code = said.get("code")
    return kind_of(status, code)(
        said.get("message") or _own_words(status, headers.get("location")),
        status=status,
        code=code,
        type=said.get("type"),
        param=said.get("param"),
        details=said.get("details"),
        request_id=said.get("request_id") or headers.get("x-request-id"),
        retry_after=seconds_of(headers.get("retry-after")),
        body=body,
    )


def _own_words(status: int, location: str | None) -> str:
    answered = f"The answer was {status} {httpx.codes.get_reason_phrase(status)}".strip()
    if not 300 <= status < 400 or not location:
        return f"{answered}."
    elsewhere = location.partition("?")[0]
    return f"{answered}: what is asked for lies at {elsewhere}, so that base_url must be corrected."


def of_event(body: Any) -> ApiError | None:
    """The error that an event of a stream reports, or None."""
    said = body.get("error") if isinstance(body, dict) else None
    if not said:
        return None
    status = said.get("status_code") if isinstance(said, dict) else None
    return of_body(status if isinstance(status, int) else 502, body, {})


def seconds_of(retry_after: str | None) -> float | None:
    """The seconds a Retry-After header asks for, given as a number or as a date; None where there
    are none.
    """
    if not retry_after:
        return None
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    except (TypeError, ValueError, OverflowError):
        return None
