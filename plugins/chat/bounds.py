"""What a request may ask of the operator's endpoint, and what the answer costs.

The endpoint is paid, or run, by the operator, and stands inside the operator's network. So a caller
chooses neither a dearer model nor several answers, and names no address that the endpoint would
fetch for it. What is refused is refused before anything is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from plugins.chat.settings import ChatSettings
from runtime.errors import BadRequest, PayloadTooLarge, ValidationFailed
from storage.text import ASCII_PER_TOKEN, estimated_tokens

OUR_MODEL = "mneme"
ANY_MODEL = "*"

_MAX_TOKENS = ("max_tokens", "max_completion_tokens")
# The same in endpoints that go their own ways; others do not know them, and are told ours as well.
_MAX_TOKENS_ELSEWHERE = ("n_predict",)
# By other names: another model than the one that was judged, more than one answer, a dearer lane,
# requests that the endpoint makes elsewhere; and what a proxy unpacks into any of these.
_NOT_PASSED = (
    "models", "fallbacks", "best_of", "service_tier", "web_search_options", "plugins", "extra_body",
)  # fmt: skip
_TOOL_TYPES = ("function", "custom")
# Text by their meaning: nobody fetches what stands in them.
_TEXTS = ("text", "refusal", "reasoning", "reasoning_content", "name")
# So is what a tool was called with, which may be an object that has addresses for the tool.
_CALLS, _CALLED_WITH = ("function", "custom", "function_call"), ("arguments", "input")
_MEDIA = ("data", "file_data")  # beside data: URLs
# By an answer's model, as a text: its endpoint adds them, or nobody knows how many tokens they are.
_NOT_WRITTEN = ("role", "id", "type", "data", "images")
_LOCATION = re.compile(r"(?:.*_)?ur[li]|image|video|audio")
_ADDRESS = re.compile(r"\s*(?!data:)[A-Za-z][A-Za-z0-9+.-]*://|\s*file:", re.IGNORECASE)
_DATA = re.compile(r"\s*data:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Measured:
    """What goes to the endpoint: how much it is, and whether it names an address.

    size_bytes  as JSON
    tokens      about so many; of media nobody knows how many they are
    address_at  place of the first message that names an address, None where none does
    """

    size_bytes: int
    tokens: int
    address_at: int | None


def measured(request: Mapping[str, Any]) -> Measured:
    """Go through the fields that go to the endpoint, once."""
    written, read = orjson.dumps(request), _Message()
    address_at = None
    for place, message in enumerate(request["messages"]):
        read.go_through(message)
        if read.names_address and address_at is None:
            address_at = place
    tokens = estimated_tokens(written.decode()) - read.media_chars // ASCII_PER_TOKEN
    return Measured(len(written), max(0, tokens), address_at)


def check(
    request: Mapping[str, Any],
    size: Measured,
    model: str | None,
    configured: str | None,
    settings: ChatSettings,
) -> None:
    """Hold a request to the settings. Raises BadRequest, PayloadTooLarge, ValidationFailed.

    request     the fields that go to the endpoint
    configured  the operator's model; None where there is none
    """
    _check_model(model, configured, settings)
    for name in _NOT_PASSED:
        if request.get(name) is not None:
            raise ValidationFailed.at(("body", name), "is not passed on by this service")
    if request.get("n") not in (None, 1):
        raise ValidationFailed.at(("body", "n"), "must be 1: one request is one answer")
    for name in (*_MAX_TOKENS, *_MAX_TOKENS_ELSEWHERE):
        _check_tokens(name, request.get(name), settings.max_tokens_max)
    for place, tool in enumerate(_items(request.get("tools"))):
        if isinstance(tool, dict) and tool.get("type", "function") not in _TOOL_TYPES:
            raise ValidationFailed.at(
                ("body", "tools", place, "type"), "must be " + " or ".join(_TOOL_TYPES)
            )
    if size.size_bytes > settings.request_bytes_max:
        raise PayloadTooLarge(
            f"What goes to the model is larger than {settings.request_bytes_max} bytes.",
            param="messages",
        )
    if size.address_at is not None and not settings.allow_remote_media:
        raise ValidationFailed.at(
            ("body", "messages", size.address_at, "content"),
            "must bring its media along as data: URLs; addresses are not fetched",
        )


def ceiling(request: Mapping[str, Any], settings: ChatSettings) -> dict[str, int]:
    """What is added to a request so that its answer has an end."""
    if any(request.get(name) is not None for name in _MAX_TOKENS):
        return {}
    return {_MAX_TOKENS[0]: settings.max_tokens_max}


def reserved(request: Mapping[str, Any], size: Measured, price: int, settings: ChatSettings) -> int:
    """Credits that an answer may cost, before anybody knows: the prompt, what memory adds left
    aside, and an answer as long as it may get.
    """
    asked = [request[name] for name in _MAX_TOKENS if isinstance(request.get(name), int)]
    longest = min(max(asked, default=settings.max_tokens_max), settings.max_tokens_max)
    return credits_for(size.tokens + longest, price, settings)


def answered_tokens(message: Any) -> int:
    """About how many tokens the endpoint wrote: a message, or what a stream adds to one. All that
    was written counts, a call of a tool and what was thought as well as the words.
    """
    if isinstance(message, str):
        return estimated_tokens(message)
    if isinstance(message, list):
        return sum(map(answered_tokens, message))
    if not isinstance(message, dict):
        return 0
    return sum(
        answered_tokens(value) for name, value in message.items() if name not in _NOT_WRITTEN
    )


def credits_for(tokens: int, price: int, settings: ChatSettings) -> int:
    """What an answer of so many tokens costs, prompt included: at least the operation's price."""
    each = settings.tokens_per_credit
    return max(price, -(-tokens // each)) if each else price


def _check_model(model: str | None, configured: str | None, settings: ChatSettings) -> None:
    allowed = {OUR_MODEL, configured, *settings.models_allowed}
    if model is None or configured is None or model in allowed or ANY_MODEL in allowed:
        return
    raise BadRequest(
        f"This model may not be used here. Leave `model` out or send `{OUR_MODEL}`; whoever runs "
        "the service can allow more with chat.models_allowed.",
        param="model",
    )


def _check_tokens(name: str, asked: Any, tokens_max: int) -> None:
    if asked is not None and (
        not isinstance(asked, int) or isinstance(asked, bool) or not 0 < asked <= tokens_max
    ):
        raise ValidationFailed.at(
            ("body", name), f"must be a whole number from 1 to {tokens_max}", "out_of_range"
        )


class _Message:
    """What stands in messages beside their words. media_chars: of what they bring along.
    names_address: whether an endpoint might fetch something for them.
    """

    def __init__(self) -> None:
        self.media_chars = 0
        self.names_address = False

    def go_through(self, value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                is_text = name in _TEXTS and isinstance(inner, str)
                if not is_text and not (key in _CALLS and name in _CALLED_WITH):
                    self.go_through(inner, name)
        elif isinstance(value, list) and key != "annotations":  # of an answer: where it was read
            for inner in value:
                self.go_through(inner, key)
        elif isinstance(value, str) and key != "content":
            self._string(value, key)

    def _string(self, value: str, key: str) -> None:
        """Base64 has no colon, so it is no address."""
        brought = _DATA.match(value) is not None
        if brought or key in _MEDIA:
            self.media_chars += len(value)
        if _LOCATION.fullmatch(key):
            self.names_address = self.names_address or not brought
        elif _ADDRESS.match(value):
            self.names_address = True


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
