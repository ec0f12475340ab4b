"""What a chat may ask of the operator's endpoint: the section `chat` of the settings."""

from __future__ import annotations

from pydantic import Field

from runtime.settings import Section


class ChatSettings(Section, frozen=True):
    follows = "llm"

    models_allowed: tuple[str, ...] = Field(
        default=(),
        description=(
            "Models that a request may name beside `mneme` and llm.model; `*` allows every model."
        ),
    )
    max_tokens_max: int = Field(
        default=8_192,
        ge=1,
        le=1_000_000,
        description=(
            "The largest max_tokens or max_completion_tokens that a request may ask for, and what "
            "is asked for where it names neither. Not more than the model can write."
        ),
    )
    request_bytes_max: int = Field(
        default=1024 * 1024,
        ge=1_024,
        le=10 * 1024 * 1024,
        description="Bytes of messages, tools and whatever else goes to the endpoint.",
    )
    allow_remote_media: bool = Field(
        default=False,
        description=(
            "Let messages name addresses (image_url and the like), which the endpoint then fetches "
            "from its own network; otherwise only data: URLs pass."
        ),
    )
    tokens_per_credit: int = Field(
        default=1_000,
        ge=0,
        description=(
            "Tokens of prompt and answer that cost one credit, at least the operation's price; 0 "
            "charges that price alone."
        ),
    )
