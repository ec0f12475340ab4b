"""An OpenAI-compatible chat endpoint as the language model, asked through the official `openai`
client.

Owns waiting and failing: how many calls are under way, how long each may take, what is tried again
and how often, and which failure is which.

What holds for each call:
- The `answer` of a CompletionFailed is what someone who asked for exactly this call should be told
  (401 and 403 of the endpoint are our configuration's fault, so they are 502 to a caller).
- `complete` tries 408, 409, 429, 5xx and broken connections again, three attempts in all, with
  jittered pauses or as long as Retry-After says, never past its time limit. What is passed through
  is tried once: its caller has a retry policy of its own.
- Only the settings say where texts go: no redirects, no proxies, no organisation or key from the
  environment.
- A language model belongs to the event loop that uses it; close it in that loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import aiohttp
import httpx2
import openai
import orjson
from pydantic import BaseModel, ValidationError

from runtime import limits, tracing
from runtime.errors import BadRequest, RateLimited, Unavailable, UpstreamFailed, UpstreamTimeout
from runtime.inference.language_model import (
    Completion,
    CompletionFailed,
    Events,
    Message,
    Schema,
    Usage,
    deadline,
)
from runtime.retry_after import seconds_asked


class OpenAiLanguageModel:
    """A LanguageModel; see the module docstring."""

    def __init__(
        self, base_url: str, api_key: str | None, model: str, *, timeout_seconds: float = 60.0
    ):
        self._model = model
        self.timeout_seconds = timeout_seconds
        self._takes_schemas = True  # until the endpoint refuses one
        self._places = asyncio.Semaphore(limits.COMPLETIONS_AT_ONCE_MAX)
        self._completions = 0
        self._passing = 0
        self._headers = {
            "Authorization": f"Bearer {api_key}" if api_key else openai.Omit(),
            "OpenAI-Organization": openai.Omit(),
            "OpenAI-Project": openai.Omit(),
        }
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or "none",
            max_retries=0,
            # The client on aiohttp takes half the processor time of the default one for each event
            # of a stream. It has no time limits of its own: those here hold for whole calls, and
            # for each event.
            http_client=openai.DefaultAioHttpClient(
                timeout=None,
                limits=httpx2.Limits(
                    max_connections=limits.PASSED_THROUGH_REQUESTS_MAX
                    + limits.COMPLETIONS_AT_ONCE_MAX,
                    max_keepalive_connections=limits.COMPLETIONS_AT_ONCE_MAX,
                ),
                trust_env=False,
                follow_redirects=False,
            ),
        )

    @property
    def name(self) -> str:
        return self._model

    async def close(self) -> None:
        await self._client.close()

    # --- our own questions ------------------------------------------------------------------------

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: type[BaseModel] | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> Completion[Any]:
        if self._completions >= limits.COMPLETIONS_WAITING_MAX:
            raise _overloaded("too many completions wait for it")
        request: dict[str, Any] = {"model": self._model, "messages": list(messages)}
        if max_tokens is not None:
            request["max_tokens"] = max_tokens
        if temperature is not None:
            request["temperature"] = temperature
        self._completions += 1
        try:
            with deadline(self.timeout_seconds):
                async with asyncio.timeout(self.timeout_seconds), self._places:
                    if schema is None:
                        text, usage = _first_choice(
                            await self._requested(request, limits.COMPLETION_RETRIES_MAX)
                        )
                        return Completion(text, None, usage)
                    return await self._structured(request, schema)
        finally:
            self._completions -= 1

    async def _structured(
        self, request: dict[str, Any], schema: type[Schema]
    ) -> Completion[Schema]:
        """An object of the schema; an answer that misses it is sent back once, with what is wrong
        with it.
        """
        request["messages"] = _with_instruction(request["messages"], schema)
        text, used = _first_choice(await self._asked_for(request, schema))
        try:
            return Completion(text, _read(schema, text), used)
        except ValidationError as missed:
            findings = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'the answer'}: {e['msg']}"
                for e in missed.errors(include_input=False)
            )
        complaint = (
            f"That is not what was asked for ({findings[: limits.REPAIR_CHARS_MAX]}). Answer again "
            "with the JSON object alone."
        )
        request["messages"] += [
            {"role": "assistant", "content": text},
            {"role": "user", "content": complaint},
        ]
        text, usage = _first_choice(await self._asked_for(request, schema))
        try:
            return Completion(text, _read(schema, text), used + usage)
        except ValidationError as missed:
            raise CompletionFailed(
                f"its answer misses the schema {schema.__name__} twice"
            ) from missed

    async def _asked_for(self, request: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
        """The answer, the endpoint being held to the schema if it can be; many compatible endpoints
        cannot and answer 400.
        """
        if self._takes_schemas:
            wanted = {
                "type": "json_schema",
                "json_schema": {"name": schema.__name__, "schema": _json_schema(schema)},
            }
            try:
                return await self._requested(
                    {**request, "response_format": wanted}, limits.COMPLETION_RETRIES_MAX
                )
            except CompletionFailed as refused:
                if not isinstance(refused.answer, BadRequest):
                    raise
        answer = await self._requested(request, limits.COMPLETION_RETRIES_MAX)
        self._takes_schemas = False  # the same request without one was accepted
        return answer

    # --- passing through --------------------------------------------------------------------------

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._passage(), deadline(self.timeout_seconds):
            async with asyncio.timeout(self.timeout_seconds):
                return await self._requested(request, 0)

    async def stream(self, request: Mapping[str, Any]) -> Events:
        events = Events(self._sent_events(request), self.timeout_seconds)
        try:
            with tracing.part("model", "llm"):
                await events.begin()
        except BaseException:
            await events.aclose()
            raise
        return events

    async def _sent_events(self, request: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        with self._passage():
            async with self._response(request, 0) as response:
                response.stream = sent = _Sent(response.stream)
                with _classified():
                    events: openai.AsyncStream[Any] = openai.AsyncStream(
                        cast_to=object, response=response, client=self._client
                    )
                    async for event in events:
                        sent.unread = 0
                        yield event

    @contextlib.contextmanager
    def _passage(self):
        if self._passing >= limits.PASSED_THROUGH_REQUESTS_MAX:
            raise _overloaded("too many answers are under way")
        self._passing += 1
        try:
            yield
        finally:
            self._passing -= 1

    # --- the wire ---------------------------------------------------------------------------------

    async def _requested(self, request: Mapping[str, Any], retries: int) -> dict[str, Any]:
        """One request -> the completion, once it looks like one."""
        with tracing.part("model", "llm"):
            body = await self._body(request, retries)
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError as broken:
            raise CompletionFailed("its answer is not JSON") from broken
        if (
            not isinstance(answer, dict)
            or not isinstance(answer.get("choices"), list)
            or not answer["choices"]
        ):
            raise CompletionFailed("its answer has no choices")
        if not all(
            isinstance(choice, dict) and isinstance(choice.get("message"), dict)
            for choice in answer["choices"]
        ):
            raise CompletionFailed("its answer has a choice without a message")
        return answer

    async def _body(self, request: Mapping[str, Any], retries: int) -> bytes:
        body = bytearray()
        async with self._response(request, retries) as response:
            with _classified():
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > limits.COMPLETION_BYTES_MAX:
                        raise CompletionFailed("its answer is larger than any answer should be")
        return bytes(body)

    @contextlib.asynccontextmanager
    async def _response(
        self, request: Mapping[str, Any], retries: int
    ) -> AsyncIterator[httpx2.Response]:
        """The response to a request, its body unread."""
        with _classified():
            answered = await self._client.post(
                "/chat/completions",
                body=dict(request),
                options={"headers": self._headers, "max_retries": retries},
                cast_to=httpx2.Response,
                stream=True,
                stream_cls=openai.AsyncStream[Any],
            )
        # Whoever asks for a bare response gets one, though the client's types say a stream.
        response = cast(httpx2.Response, answered)
        try:
            yield response
        finally:
            await response.aclose()


class _Sent(httpx2.AsyncByteStream):
    """The bytes of a stream, `unread` of which have come since its last event. Raises
    CompletionFailed where they are more than any answer has: the client would keep all of a line
    that does not end.
    """

    def __init__(self, stream: Any):
        self._stream = stream
        self.unread = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self.unread += len(chunk)
            if self.unread > limits.COMPLETION_BYTES_MAX:
                raise CompletionFailed("its stream has an event larger than any answer should be")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


# --- reading answers ------------------------------------------------------------------------------


def _first_choice(answer: Mapping[str, Any]) -> tuple[str, Usage]:
    """The text of the first choice."""
    text = answer["choices"][0]["message"].get("content")
    if not isinstance(text, str) or not text.strip():
        raise CompletionFailed("its answer is empty")
    return text, Usage.of(answer)


@cache
def _json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Made once: it costs milliseconds, and what it leaves costs the garbage collector more."""
    return schema.model_json_schema()


def _with_instruction(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """The messages with the schema in words: for endpoints that cannot be held to one, and for
    models that read it anyway.
    """
    said = (
        "Answer with one JSON object, and nothing else, that matches this JSON Schema:\n"
        + json.dumps(_json_schema(schema))
    )
    first = messages[0] if messages else {}
    if first.get("role") == "system" and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{said}"}, *messages[1:]]
    return [{"role": "system", "content": said}, *messages]


def _read(schema: type[Schema], text: str) -> Schema:
    """The object in the text, which models like to wrap in a fence or a sentence. Raises
    ValidationError.
    """
    start, end = text.find("{"), text.rfind("}")
    return schema.model_validate_json(text[start : end + 1] if 0 <= start < end else text)


# --- failures -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _classified():
    """What the client raises -> CompletionFailed."""
    try:
        yield
    except openai.APIConnectionError as broken:
        # A connection that ends without an answer comes as a timeout from aiohttp's transport; real
        # ones are TimeoutError here.
        raise _transient("its connection failed") from broken
    except openai.APIStatusError as refused:
        raise _refusal(refused) from refused
    except openai.APIError as reported:
        raise CompletionFailed(
            f"it reported an error in its stream: {_clipped(reported.message)}"
        ) from reported
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as broken:
        raise _transient("its connection failed") from broken
    except aiohttp.ClientError as broken:
        # What the transport has no name for: a head that is none, a body that cannot be unpacked.
        raise _transient("its connection failed") from broken
    except (json.JSONDecodeError, UnicodeDecodeError) as nonsense:
        raise CompletionFailed("its stream is not JSON") from nonsense


def _refusal(refused: openai.APIStatusError) -> CompletionFailed:
    status, said = refused.status_code, _clipped(_message_of(refused))
    wait = _retry_after(refused.response.headers.get("Retry-After"))
    if status == 429:
        answer = RateLimited(
            f"The language model's endpoint is rate limited: {said}",
            limit=0,
            retry_after_seconds=wait,
        )
        del answer.headers[
            "X-RateLimit-Limit"
        ]  # the ceiling is the endpoint's, which does not tell it
        return CompletionFailed("its endpoint is rate limited", answer)
    if status in (401, 403):
        return CompletionFailed(
            f"its endpoint refused our credential ({status}); check llm.api_key"
        )
    if status in (408, 504):
        return CompletionFailed(
            f"it answered {status}",
            UpstreamTimeout("The language model was late.", retry_after_seconds=wait),
        )
    if 400 <= status < 500:
        return CompletionFailed(
            f"it answered {status}",
            BadRequest(f"The language model refused the request: {said}", param=refused.param),
        )
    return _transient(f"it answered {status}", wait)


def _transient(reason: str, wait: int = 1) -> CompletionFailed:
    return CompletionFailed(
        reason, UpstreamFailed(f"The language model failed: {reason}.", retry_after_seconds=wait)
    )


def _overloaded(reason: str) -> CompletionFailed:
    return CompletionFailed(
        reason, Unavailable(f"The language model cannot be asked now: {reason}.")
    )


def _message_of(refused: openai.APIStatusError) -> str:
    """The endpoint's own words."""
    body = refused.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        said = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(said, str) and said:
            return said
    return f"status {refused.status_code}"


def _clipped(text: str) -> str:
    return text[: limits.UPSTREAM_MESSAGE_CHARS_MAX]


def _retry_after(header: str | None) -> int:
    """Retry-After in whole seconds, at least 1; 1 as well when it is missing or nonsense."""
    return max(1, math.ceil(seconds_asked(header) or 0))
