"""Errors keep their wire fields and survive the way between processes."""

from __future__ import annotations

import pickle

import pytest

from plugins.collections import CollectionNotFound
from runtime import errors


def every_error() -> list[errors.ApiError]:
    return [
        errors.BadRequest("m", param="confirm"),
        errors.Unauthenticated("m", code="missing_api_key"),
        errors.PermissionDenied("m"),
        errors.FeatureNotAvailable({"error": "feature_not_available", "message": "m"}),
        errors.NotFound("m"),
        CollectionNotFound(),
        errors.MethodNotAllowed(["GET", "POST"]),
        errors.NotAcceptable("m"),
        errors.Conflict("m", retry_after_seconds=1),
        errors.PreconditionFailed("m"),
        errors.PayloadTooLarge("m", code="document_too_large"),
        errors.UriTooLong("m"),
        errors.UnsupportedMediaType("m"),
        errors.ValidationFailed.at(("body", "content"), "needed", "missing"),
        errors.RateLimited("m", limit=60, retry_after_seconds=3),
        errors.HeadersTooLarge("m"),
        errors.InternalError("m"),
        errors.NotInstalled("m"),
        errors.UpstreamFailed("m"),
        errors.Unavailable("m"),
        errors.UpstreamTimeout("m"),
    ]


@pytest.mark.parametrize("error", every_error(), ids=lambda e: type(e).__name__)
def test_an_error_pickles_whole(error: errors.ApiError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and copy.__dict__ == error.__dict__ and str(copy) == str(error)


def test_only_the_thirteen_codes_exist() -> None:
    codes = {error.code for error in every_error()} | {
        "invalid_api_key",
        "quota_exceeded",
        "rate_limit_exceeded",
    }
    assert codes - {None} == {
        "invalid_api_key", "missing_api_key", "invalid_request", "validation_error",
        "resource_not_found", "collection_not_found", "rate_limit_exceeded", "quota_exceeded",
        "document_too_large", "unsupported_format", "permission_denied", "feature_not_available",
        "internal_error",
    }  # fmt: skip


def test_challenges_and_ceilings_are_headers() -> None:
    assert errors.Unauthenticated("m").headers == {"WWW-Authenticate": "Bearer"}
    assert errors.MethodNotAllowed(["GET", "POST"]).headers == {"Allow": "GET, POST"}
    assert errors.RateLimited("m", limit=60, retry_after_seconds=3).headers == {
        "X-RateLimit-Limit": "60"
    }
