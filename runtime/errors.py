"""The errors a caller can meet, raised by name; a plugin may derive its own from them.

    ApiError
    ├── BadRequest             400 invalid_request
    ├── Unauthenticated        401 missing_api_key | invalid_api_key
    ├── PermissionDenied       403 permission_denied
    ├── FeatureNotAvailable    403 feature_not_available (flat body)
    ├── NotFound               404 resource_not_found
    ├── MethodNotAllowed       405
    ├── NotAcceptable          406
    ├── Conflict               409 (with retry_after_seconds while the first request is running)
    ├── PreconditionFailed     412
    ├── PayloadTooLarge        413 invalid_request | document_too_large
    ├── UnsupportedMediaType   415 unsupported_format
    ├── UriTooLong             414
    ├── HeadersTooLarge        431
    ├── ValidationFailed       422 validation_error, with details
    ├── RateLimited            429 rate_limit_exceeded | quota_exceeded
    ├── InternalError          500 internal_error
    ├── NotInstalled           501
    ├── UpstreamFailed         502
    ├── Unavailable            503
    │   └── Moved              (never leaves the service: the gateway asks another shard)
    └── UpstreamTimeout        504

The gateway alone turns them into bytes; below it an error is an exception or the `error` of a
Reply. Instances pickle, so they cross process borders unchanged.
"""

from __future__ import annotations

from typing import Any, Self

# What the code of a plugin may raise, whose call alone fails then: a library that it calls may want
# to end the process, as commands do.
PLUGIN_RAISES = (Exception, SystemExit)

OVERLOADED_HEADER = "X-Overloaded"  # of every refusal for want of room, the front door's too


class ApiError(Exception):
    """An answer that is not a success.

    status   HTTP status code
    type     category, such as "validation_error"
    code     one of thirteen codes, or None when none fits
    param    the offending parameter, when there is one
    details  422 only: [{"loc": [...], "msg": str, "type": str}]
    retry_after_seconds   becomes the Retry-After header
    headers  further headers of the answer
    guess    whether the caller guessed at a secret of an account, and wrong: that is counted
    """

    status = 500
    type = "server_error"
    code: str | None = None
    guess = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        details: list[dict[str, Any]] | None = None,
        retry_after_seconds: int | None = None,
        headers: dict[str, str] | None = None,
    ):
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else type(self).code
        self.param = param
        self.details = details
        self.retry_after_seconds = retry_after_seconds
        self.headers = headers or {}

    def without_stack(self) -> Self:
        """The error itself, to be kept as an answer: without the frames that it was raised through,
        which hold what holds the error, so that only the garbage collector would let go of both.
        """
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def __reduce__(self):
        return _revive, (type(self), self.__dict__.copy(), self.args)


def _revive(kind: type[ApiError], state: dict[str, Any], args: tuple) -> ApiError:
    error = kind.__new__(kind, *args)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class BadRequest(ApiError):
    status, type, code = 400, "invalid_request_error", "invalid_request"


class Unauthenticated(ApiError):
    """No usable credential. `code` is missing_api_key when none was sent at all."""

    status, type, code = 401, "auth_error", "invalid_api_key"

    def __init__(self, message: str, **fields: Any):
        super().__init__(message, **fields)
        self.headers.setdefault("WWW-Authenticate", "Bearer")


class PermissionDenied(ApiError):
    status, type, code = 403, "permission_error", "permission_denied"


class FeatureNotAvailable(ApiError):
    """The tier lacks the feature; `body` is a flat object, sent as it is."""

    status, type, code = 403, "permission_error", "feature_not_available"

    def __init__(self, body: dict[str, Any]):
        super().__init__(body["message"])
        self.body = body


class NotFound(ApiError):
    status, type, code = 404, "not_found_error", "resource_not_found"


class MethodNotAllowed(ApiError):
    status, type = 405, "http_exception"

    def __init__(self, allowed: list[str]):
        super().__init__(
            "This path does not answer this method; use " + " or ".join(allowed) + ".",
            headers={"Allow": ", ".join(allowed)},
        )


class NotAcceptable(ApiError):
    status, type = 406, "http_exception"


class Conflict(ApiError):
    """retry_after_seconds set: the first request is still running. Not set: a retry cannot help,
    and clients are told so.
    """

    status, type = 409, "conflict_error"


class PreconditionFailed(ApiError):
    status, type = 412, "conflict_error"


class PayloadTooLarge(ApiError):
    status, type, code = 413, "http_exception", "invalid_request"


class UriTooLong(ApiError):
    status, type = 414, "http_exception"


class UnsupportedMediaType(ApiError):
    status, type, code = 415, "http_exception", "unsupported_format"


class ValidationFailed(ApiError):
    """What was sent does not fit its model. Details never echo the rejected value."""

    status, type, code = 422, "validation_error", "validation_error"

    def __init__(self, details: list[dict[str, Any]], message: str | None = None):
        first = details[0]
        where = ".".join(str(part) for part in first["loc"])
        super().__init__(
            message or f"The request is not valid at {where}: {first['msg']}",
            details=details,
            param=where,
        )

    @classmethod
    def at(
        cls, loc: tuple[str | int, ...], msg: str, kind: str = "value_error"
    ) -> ValidationFailed:
        """One finding at one place, such as ("body", "collection_id")."""
        return cls([{"loc": list(loc), "msg": msg, "type": kind}])


class RateLimited(ApiError):
    """`limit` is the ceiling that fired; it becomes X-RateLimit-Limit."""

    status, type, code = 429, "rate_limit_error", "rate_limit_exceeded"

    def __init__(
        self, message: str, *, limit: int, retry_after_seconds: int, code: str | None = None
    ):
        super().__init__(
            message,
            code=code,
            retry_after_seconds=retry_after_seconds,
            headers={"X-RateLimit-Limit": str(limit)},
        )
        self.limit = limit


class HeadersTooLarge(ApiError):
    status, type = 431, "http_exception"


class InternalError(ApiError):
    status, type, code = 500, "server_error", "internal_error"


class NotInstalled(ApiError):
    """The operation needs packages that this service is installed without (runtime/extras.py)."""

    status, type = 501, "server_error"


class UpstreamFailed(ApiError):
    status, type = 502, "server_error"


class Unavailable(ApiError):
    """The outcome may be unknown; a retry with the same Idempotency-Key is safe."""

    status, type = 503, "server_error"

    def __init__(self, message: str, *, retry_after_seconds: int | None = 1, **fields: Any):
        super().__init__(message, retry_after_seconds=retry_after_seconds, **fields)


class Moved(Unavailable):
    """The shard does not answer for this slot now; nothing of the call was done.

    version   of the placement that the shard knows
    admitted  the call was counted before the slot was found to be elsewhere
    """

    def __init__(self, version: int, *, admitted: bool = False):
        super().__init__(
            "The part of the service that holds this account is moving. Retry in a moment with the "
            "same Idempotency-Key."
        )
        self.version, self.admitted = version, admitted


class UpstreamTimeout(ApiError):
    status, type = 504, "server_error"
