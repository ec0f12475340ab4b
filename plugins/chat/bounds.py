"""What a request may ask of the operator's endpoint, and what the answer costs.

The endpoint is paid, or run, by the operator, and stands inside the operator's network. So a caller
chooses neither a dearer model nor several answers, and names no address that the endpoint would
fetch for it. What is refused is refused before anything is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from plugins.chat.settings import ChatSettings
from runtime.errors import BadRequest, PayloadTooLarge, ValidationFailed

OUR_MODEL = "mneme"
ANY_MODEL = "*"
CHAT_BYTES_PER_TOKEN = 4  # a guess, for answers whose endpoint did not count

_MAX_TOKENS = ("max_tokens", "max_completion_tokens")
# By other names: another model than the one that was judged, more than one answer, a dearer lane,
# requests that the endpoint makes elsewhere.
_NOT_PASSED = ("models", "best_of", "service_tier", "web_search_options", "plugins")
_TOOL_TYPES = ("function", "custom")
# Text by their meaning: nobody fetches what stands in them.
_TEXTS = ("text", "refusal", "arguments", "reasoning", "reasoning_content", "name")
# By an answer's model, as a text: its endpoint adds them, or nobody knows how many tokens they are.
_NOT_WRITTEN = ("role", "id", "type", "data", "images")
_LOCATION = re.compile(r"(?:.*_)?ur[li]|image|video|audio")
_ADDRESS = re.compile(r"\s*(?!data:)[A-Za-z][A-Za-z0-9+.-]*://|\s*file:", re.IGNORECASE)
_DATA = re.compile(r"\s*data:", re.IGNORECASE)


def check(
    request: Mapping[str, Any], model: str | None, configured: str | None, settings: ChatSettings
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
    for name in _MAX_TOKENS:
        _check_tokens(name, request.get(name), settings.max_tokens_max)
    for place, tool in enumerate(_items(request.get("tools"))):
        if isinstance(tool, dict) and tool.get("type", "function") not in _TOOL_TYPES:
            raise ValidationFailed.at(
                ("body", "tools", place, "type"), "must be " + " or ".join(_TOOL_TYPES)
            )
    if len(orjson.dumps(request)) > settings.request_bytes_max:
        raise PayloadTooLarge(
            f"What goes to the model is larger than {settings.request_bytes_max} bytes.",
            param="messages",
        )
    if not settings.allow_remote_media:
        for place, message in enumerate(request["messages"]):
            if _names_an_address(message):
                raise ValidationFailed.at(
                    ("body", "messages", place, "content"),
                    "must bring its media along as data: URLs; addresses are not fetched",
                )


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is, for what the endpoint did not count."""
    return -(-len(text.encode("utf-8", "replace")) // CHAT_BYTES_PER_TOKEN)


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


def text_of(request: Mapping[str, Any]) -> str:
    """The words of a request's messages; of other parts nobody knows how many tokens they are."""
    said: list[str] = []
    for message in request["messages"]:
        content = message.get("content")
        if isinstance(content, str):
            said.append(content)
        said += (
            part["text"]
            for part in _items(content)
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return " ".join(said)


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


def _names_an_address(value: Any, key: str = "") -> bool:
    """Whether an endpoint might fetch something for what stands here. Base64 has no colon."""
    if isinstance(value, dict):
        return any(
            _names_an_address(inner, name)
            for name, inner in value.items()
            if name not in _TEXTS or not isinstance(inner, str)
        )
    if isinstance(value, list) and key == "annotations":  # of an answer: where it was read
        return False
    if isinstance(value, list):
        return any(_names_an_address(inner, key) for inner in value)
    if not isinstance(value, str) or key == "content":
        return False
    if _LOCATION.fullmatch(key):
        return _DATA.match(value) is None
    return _ADDRESS.match(value) is not None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
