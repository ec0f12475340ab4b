"""The operation: what memory knows is put in front of a conversation, and the answer is passed
through, event by event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, StrictBool, field_validator, model_validator

from plugins.answers import RECALLED, Block, fenced, with_successors
from plugins.chat import bounds
from plugins.chat.bounds import OUR_MODEL
from plugins.chat.settings import ChatSettings
from plugins.chat.stream import Stream
from plugins.collections import CollectionId, require_collection
from plugins.memories import CONTENT_CHARS_MAX, ScopeName, Storing
from plugins.search import QUERY_CHARS_MAX
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Call, Flow, Idempotency, Reply, View
from runtime.api.steps import Steps
from runtime.errors import ApiError, NotFound, PermissionDenied, Unavailable, ValidationFailed
from runtime.extras import LLM
from runtime.inference import CompletionFailed, LanguageModel, Models, Usage
from runtime.settings import Settings
from storage.text import estimated_tokens

CHAT_MESSAGES_MAX = 2_000
CHAT_MEMORIES_MAX = 50
CHAT_MEMORY_SECONDS_MAX = 5
CHAT_MEMORY_TOKENS_MAX = 4_000

OURS = frozenset(
    ("collection_id", "user", "session_id", "memory_limit", "features", "store_conversation")
)
CREDITS_MIN = 10
CREDITS_PER_MEMORY = 1  # that is stored with others
LEADING_ROLES = ("system", "developer")
TOOL_ROLES = ("tool", "function")
CORRECTIONS_MAX, CORRECTIONS_READ_MAX = 5, 20
CORRECTIONS_QUERY_CHARS_MAX = 2_048  # it stands in an address, which is shorter than a body

# --- the wire -------------------------------------------------------------------------------------


class Features(Body):
    memory: StrictBool = Field(
        default=True, description="Put in what memory knows about the last message."
    )
    profile: StrictBool = Field(default=True, description="Put in the profile of `user`.")
    learning: StrictBool = Field(
        default=True, description="Put in corrections that concern the last message."
    )


class ChatBody(Body):
    """OpenAI's request. What is not named here goes upstream as it is."""

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)
    _measured: bounds.Measured = PrivateAttr()

    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="Goes upstream; absent or `mneme`: the configured one.",
    )
    messages: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=CHAT_MESSAGES_MAX,
        description="The conversation, as OpenAI has it.",
    )
    stream: StrictBool = Field(default=False, description="Answer event by event.")
    collection_id: CollectionId | None = Field(
        default=None, description="Remember from this collection only, and store into it."
    )
    user: ScopeName | None = Field(
        default=None, description="The end user; the user_id of what is remembered and stored."
    )
    session_id: ScopeName | None = Field(
        default=None, description="The session that a stored conversation belongs to."
    )
    memory_limit: int = Field(
        default=10, strict=True, ge=0, le=CHAT_MEMORIES_MAX, description="At most so many memories."
    )
    features: Features = Field(default_factory=Features, description="What is put in.")
    store_conversation: StrictBool = Field(
        default=False,
        description=f"Store the user's last message and the answer, of each the first "
        f"{CONTENT_CHARS_MAX:,} characters. Needs the scope write.",
    )

    @field_validator("messages")
    @classmethod
    def _have_roles(cls, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for place, message in enumerate(messages):
            if not isinstance(message.get("role"), str) or not message["role"]:
                raise ValidationFailed.at(
                    ("body", "messages", place, "role"), "is required", "missing"
                )
        return messages

    @model_validator(mode="after")
    def _measure(self) -> ChatBody:
        self._measured = bounds.measured(self.passed_on)
        return self

    @property
    def passed_on(self) -> dict[str, Any]:
        """What of a request goes to the endpoint."""
        sent = self.model_fields_set - OURS
        return {name: value for name, value in self if name in sent}

    @property
    def measured(self) -> bounds.Measured:
        """How much that is. The gateway that read the request has measured it."""
        return self._measured

    @property
    def stream_options(self) -> dict[str, Any]:
        options = (self.model_extra or {}).get("stream_options")
        return options if isinstance(options, dict) else {}

    @property
    def wants_usage(self) -> bool:
        return self.stream_options.get("include_usage") is True

    @property
    def memories_kept(self) -> int:
        """As how many memories the turn is stored, at most."""
        return 1 + bool(self.newly_said) if self.store_conversation else 0

    @property
    def newly_said(self) -> str:
        """The user's last message, "" where results of tools follow it: it was stored with the
        request that led to their calls.
        """
        for message in reversed(self.messages):
            if message["role"] == "user":
                return self.last_said
            if message["role"] in TOOL_ROLES:
                return ""
        return ""

    @property
    def last_said(self) -> str:
        """The text of the user's last message, "" when there is none."""
        said = next(
            (
                message.get("content")
                for message in reversed(self.messages)
                if message["role"] == "user"
            ),
            None,
        )
        if isinstance(said, list):
            said = " ".join(
                part["text"]
                for part in said
                if isinstance(part, dict)
                and part.get("type") == "text"
                and isinstance(part.get("text"), str)
            )
        return said.strip() if isinstance(said, str) else ""


class MemoryUse(View):
    injected_ids: list[str] = Field(description="Memories that were put in.")
    abstain_recommended: bool = Field(
        description="Whether memory holds no good evidence about the last message."
    )
    degraded: bool = Field(description="Whether a part of memory could not be asked.")


class Choice(View):
    model_config = ConfigDict(extra="allow")

    index: int
    message: dict[str, Any] = Field(description="The assistant's message, tool calls included.")
    finish_reason: str | None = Field(default=None, description="Why the model stopped.")


class ChatReply(View):
    """OpenAI's response, unchanged, and what memory had to do with it."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["chat.completion"]
    created: int = Field(description="Unix seconds.")
    model: str
    choices: list[Choice]
    usage: dict[str, Any] | None = Field(
        default=None, description="Tokens, as the endpoint counted them."
    )
    memory: MemoryUse


# --- what is put in -------------------------------------------------------------------------------


def load(ctx: ReadContext, body: ChatBody) -> dict[str, int]:
    """Refuse what the caller may not do before anything is asked: storing is a write and takes
    room, a collection must be there, and not every request is passed on. -> what the request lacks.
    """
    llm = ctx.settings.llm
    configured = None if llm.base_url is None else llm.model or OUR_MODEL
    chat, request = ChatSettings.of(ctx.settings), body.passed_on
    bounds.check(request, body.measured, body.model, configured, chat)
    if body.store_conversation and "write" not in ctx.principal.scopes:
        raise PermissionDenied("store_conversation needs an API key with the scope 'write'.")
    if body.collection_id is not None:
        require_collection(ctx, body.collection_id)
    if body.store_conversation:  # else the answer would be paid for, and lost with the refusal
        said = [body.newly_said[:CONTENT_CHARS_MAX]] if body.newly_said else []
        Storing.check_contents(ctx, [*said, ""])
    return bounds.ceiling(request, chat)


def reserved(body: ChatBody, settings: Settings) -> int:
    """The credits that an answer, and what is kept of it, may cost."""
    chat = ChatSettings.of(settings)
    answer = bounds.reserved(body.passed_on, body.measured, CREDITS_MIN, chat)
    return answer + CREDITS_PER_MEMORY * body.memories_kept


def finish(ctx: WriteContext, body: ChatBody) -> None:
    """Charge for the tokens that the request and its answer came to."""
    ctx.credits = bounds.credits_for(ctx.prepared or 0, ctx.credits, ChatSettings.of(ctx.settings))


class Recall:
    """What memory contributes to one request."""

    def __init__(self) -> None:
        self.block = Block("", [], 0)
        self.abstain_recommended = False
        self.degraded = False

    @property
    def view(self) -> dict[str, Any]:
        return {
            "injected_ids": self.block.ids,
            "abstain_recommended": self.abstain_recommended,
            "degraded": self.degraded,
        }

    async def gather(self, call: Call, steps: Steps) -> None:
        body: ChatBody = call.body
        query = body.last_said[:QUERY_CHARS_MAX]
        found, profile, corrections = await asyncio.gather(
            self._or_none(self._search(body, query, steps)),
            self._or_none(self._profile(body, steps)),
            self._or_none(self._corrections(body, query, steps)),
        )
        hits = []
        if found is not None:
            hits = with_successors(found["results"])
            self.abstain_recommended = found["abstain_recommended"]
        notes = [*_profile_notes(profile), *_correction_notes(corrections)]
        self.block = fenced(hits, call.seed, CHAT_MEMORY_TOKENS_MAX, notes=notes)

    async def _or_none(self, work: Awaitable[Any]) -> Any:
        """The result; None where that part of memory failed. What the caller got wrong is still an
        error.
        """
        try:
            async with asyncio.timeout(CHAT_MEMORY_SECONDS_MAX):
                return await work
        except (NotFound, PermissionDenied, ValidationFailed):
            raise
        except (ApiError, TimeoutError):
            self.degraded = True
            return None

    async def _search(self, body: ChatBody, query: str, steps: Steps) -> Any:
        if not body.features.memory or not body.memory_limit or not query:
            return None
        scope = {"collection_id": body.collection_id, "user_id": body.user}
        found = await steps.run(
            "search.search",
            # The model tells by itself what does not help; what it is not shown it cannot use.
            {
                "query": query,
                "limit": body.memory_limit,
                "relevance": "all",
                "view": "compact",
                **scope,
            },
        )
        self.degraded = self.degraded or found["degraded"]
        return found

    async def _profile(self, body: ChatBody, steps: Steps) -> Any:
        name = steps.offers("GET", "/v1/profile")
        if name is None or not body.features.profile or body.user is None:
            return None
        return await steps.run(name, query={"user_id": body.user})

    async def _corrections(self, body: ChatBody, query: str, steps: Steps) -> Any:
        name = steps.offers("GET", "/v1/corrections/relevant")
        if name is None or not body.features.learning or not query:
            return None
        task = query[:CORRECTIONS_QUERY_CHARS_MAX].strip()
        asked = {"query": task, "limit": CORRECTIONS_READ_MAX, "collection_id": body.collection_id}
        found = await steps.run(
            name, query={name: value for name, value in asked.items() if value is not None}
        )
        # Those of nobody in particular hold for everybody; those of others are theirs.
        own = [
            item
            for item in found["items"]
            if body.user is None or item["user_id"] in (None, body.user)
        ]
        return {"items": own[:CORRECTIONS_MAX]}


def _profile_notes(profile: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    if profile is None:
        return []
    own = [
        {"profile": name, "value": profile[name]}
        for name in ("name", "timezone", "language", "bio")
        if profile[name]
    ]
    facts = [*profile["static"], *profile["dynamic"]]
    return own + [
        {"profile": fact["key"], "value": fact["value"], "confidence": fact["confidence"]}
        for fact in facts
    ]


def _correction_notes(found: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    return (
        []
        if found is None
        else [{"correction": item["corrected_content"]} for item in found["items"]]
    )


def upstream_request(body: ChatBody, block: Block, model: LanguageModel) -> dict[str, Any]:
    """The request as it goes on: without our extras, with the block behind the application's own
    instructions.
    """
    request = body.passed_on
    if body.model is None or body.model == OUR_MODEL:
        request["model"] = model.name
    if block.text:
        roles = [message["role"] for message in body.messages]
        place = next(
            (number for number, role in enumerate(roles) if role not in LEADING_ROLES), len(roles)
        )
        request["messages"] = [
            *body.messages[:place],
            {"role": "system", "content": block.text},
            *body.messages[place:],
        ]
    return request


# --- the flow -------------------------------------------------------------------------------------


async def complete(call: Call, steps: Steps, models: Models) -> Reply:
    """Recall what the memories hold of it, ask the model, and keep what was said."""
    body: ChatBody = call.body
    model = models.language_model
    if model is None:
        raise Unavailable(
            "No language model is configured. Set llm.base_url (and llm.model, llm.api_key) to an "
            "OpenAI-compatible endpoint.",
            retry_after_seconds=None,
        )
    recall = Recall()
    await recall.gather(call, steps)
    request = upstream_request(body, recall.block, model) | call.loaded
    keeper = Keeper(body, recall, steps)
    steps.outcome = asked = body.measured.tokens + estimated_tokens(recall.block.text)
    try:
        if body.stream:
            request["stream_options"] = {**body.stream_options, "include_usage": True}
            reply = Reply(
                200,
                headers={"X-Accel-Buffering": "no"},
                content_type="text/event-stream; charset=utf-8",
                outcome=asked,
            )
            reply.body = Stream(
                await model.stream(request),
                recall.view,
                keeper.keep,
                reply,
                call.request_id,
                body.wants_usage,
            )
            return reply
        answer = await model.answer(request)
    except CompletionFailed as failed:
        steps.outcome = None  # no answer, no price
        raise failed.answer from failed
    message = answer["choices"][0]["message"]
    steps.outcome = Usage.of(answer).total_tokens or asked + bounds.answered_tokens(message)
    await keeper.keep(message.get("content"))
    return Reply(200, {**answer, "memory": recall.view}, outcome=steps.outcome)


class Keeper:
    """Stores the two ends of a turn when the request asks for it. The flow's key makes that happen
    once.
    """

    def __init__(self, body: ChatBody, recall: Recall, steps: Steps):
        self._body, self._recall, self._steps = body, recall, steps

    async def keep(self, answered: Any) -> None:
        body = self._body
        if not body.store_conversation:
            return
        shared = {"source_type": "chat", "session_id": body.session_id}
        turns = []
        if body.newly_said:
            turns.append(
                {
                    "content": body.newly_said[:CONTENT_CHARS_MAX],
                    "speaker": body.user or "user",
                    "role": "user",
                    **shared,
                }
            )
        if isinstance(answered, str) and answered.strip():
            recalled = {"tags": [RECALLED], "metadata": {"recalled_ids": self._recall.block.ids}}
            turns.append(
                {
                    "content": answered[:CONTENT_CHARS_MAX],
                    "speaker": "assistant",
                    "role": "assistant",
                    **shared,
                    **recalled,
                }
            )
        if turns:
            scope = {"collection_id": body.collection_id, "user_id": body.user}
            await self._steps.run("memories.create_batch", {"memories": turns, **scope})


# --- the operation --------------------------------------------------------------------------------

_EXAMPLE_MESSAGE = {"role": "assistant", "content": "Under the blue flowerpot."}

OPERATIONS = (
    Flow(
        name="chat.completions",
        method="POST",
        path="/v1/chat/completions",
        load=load,
        handler=complete,
        finish=finish,
        body=ChatBody,
        response=ChatReply,
        idempotency=Idempotency.CACHED,
        credits=CREDITS_MIN,
        reserves=reserved,
        streams=True,
        extra=LLM,
        summary="Chat completion with memory",
        description="OpenAI's request and response. What memory knows about the "
        "user's last message is "
        "put in front of the "
        "conversation, fenced and marked as untrusted data. With `stream: true` the answer is "
        "a stream of server-sent events, "
        "whose last chunk before usage has `memory`. Without a configured language model: 503.",
        example={
            "model": "mneme",
            "messages": [{"role": "user", "content": "Where is the spare key?"}],
            "user": "ada",
        },
        example_reply={
            "id": "chatcmpl-7",
            "object": "chat.completion",
            "created": 1_778_248_560,
            "model": "tiny-1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "Under the blue flowerpot."},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 211, "completion_tokens": 7, "total_tokens": 218},
            "memory": {
                "injected_ids": ["mem_01kaeqz6hc2t9w8r5n3v7x1y4b6d8f0g"],
                "abstain_recommended": False,
                "degraded": False,
            },
        },
    ),
)
