"""Models that read what is no text: a transcriber for speech, a recogniser for pictures. Both are optional and remote.

    Transcriber   OpenAI's /audio/transcriptions, which whisper servers speak
    Recogniser    OpenAI's /chat/completions with a picture, for a model that sees

Each call has a timeout and is repeated after a failure that may pass (no answer, 429, 5xx), twice, after a pause partly left to
chance. What cannot be had is ReadingUnavailable; what the endpoint refuses for good (another 4xx) is ReadingRefused.
"""

from __future__ import annotations

import asyncio
import base64
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import orjson

from runtime.limits import REMOTE_READING_ANSWER_BYTES_MAX, REMOTE_READING_ATTEMPTS_MAX, REMOTE_READING_BACKOFF_SECONDS_MIN

if TYPE_CHECKING:
    from runtime.settings import Settings

_READ_PICTURE = (
    "Write down all text in this picture, exactly as it stands, in reading order. "
    "Answer with the text alone, and with nothing at all if there is none."
)


class ReadingUnavailable(Exception):
    """The endpoint is down, late, overloaded or answers nonsense; later it may do better. The message holds no text and no secret."""


class ReadingRefused(Exception):
    """The endpoint refuses this for good."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What was said from `begins` to `ends`, in seconds of the piece that was sent."""

    begins: float
    ends: float
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    said: list[Spoken]
    language: str | None


class _Endpoint:
    """One OpenAI-compatible service."""

    def __init__(self, base_url: str, api_key: str | None, model: str, timeout_seconds: float):
        self._url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._model = model
        self._timeout = timeout_seconds

    async def _post(self, path: str, **content: Any) -> dict[str, Any]:
        """The decoded answer. Raises ReadingUnavailable, ReadingRefused."""
        reason = ""
        for attempt in range(REMOTE_READING_ATTEMPTS_MAX):
            if attempt:
                await asyncio.sleep(REMOTE_READING_BACKOFF_SECONDS_MIN * 2 ** (attempt - 1) * random.uniform(1.0, 2.0))
            try:
                status, body = await self._post_once(path, content)
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as failed:
                reason = f"it cannot be reached ({type(failed).__name__})"
                continue
            if status == 200:
                try:
                    answer = orjson.loads(body)
                except orjson.JSONDecodeError:
                    answer = None
                if isinstance(answer, dict):
                    return answer
                reason = "its answer is no JSON object"
            elif status == 429 or status >= 500:
                reason = f"it answers {status}"
            else:
                raise ReadingRefused(f"the endpoint refuses with {status}")
        raise ReadingUnavailable(f"the endpoint fails: {reason}")

    async def _post_once(self, path: str, content: dict[str, Any]) -> tuple[int, bytes]:
        async with (
            asyncio.timeout(self._timeout),
            httpx.AsyncClient(timeout=self._timeout, headers=self._headers) as client,
            client.stream("POST", self._url + path, **content) as answer,
        ):
            body = b""
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > REMOTE_READING_ANSWER_BYTES_MAX:
                    return 502, b""
            return answer.status_code, body


class Transcriber(_Endpoint):
    """Speech to text, with times."""

    async def transcribe(self, wav: bytes, seconds: float) -> Transcript:
        """A WAV file of so many seconds -> what was said in it. Raises ReadingUnavailable, ReadingRefused."""
        fields = {"model": self._model, "response_format": "verbose_json", "timestamp_granularities[]": "segment"}
        answer = await self._post("/audio/transcriptions", files={"file": ("piece.wav", wav, "audio/wav")}, data=fields)
        language = answer.get("language")
        said = []
        for segment in answer.get("segments") or ():
            try:
                begins, ends, text = float(segment["start"]), float(segment["end"]), str(segment["text"]).strip()
            except (KeyError, TypeError, ValueError):
                raise ReadingUnavailable("the endpoint's answer has segments without times") from None
            if text:
                said.append(Spoken(max(0.0, begins), min(max(begins, ends), seconds), text))
        whole = str(answer.get("text") or "").strip()
        if not said and whole:
            said = [Spoken(0.0, seconds, whole)]  # a server that knows no segments
        return Transcript(said, language if isinstance(language, str) else None)


class Recogniser(_Endpoint):
    """Pictures to text."""

    async def recognise(self, jpeg: bytes) -> str:
        """The text in a picture, "" when there is none. Raises ReadingUnavailable, ReadingRefused."""
        picture = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()}}
        message = {"role": "user", "content": [{"type": "text", "text": _READ_PICTURE}, picture]}
        answer = await self._post("/chat/completions", json={"model": self._model, "temperature": 0, "messages": [message]})
        try:
            return str(answer["choices"][0]["message"]["content"] or "").strip()
        except (KeyError, IndexError, TypeError):
            raise ReadingUnavailable("the endpoint's answer has no message") from None


def load_transcriber(settings: Settings) -> Transcriber | None:
    """What transcriber.* asks for; None without a base_url."""
    asked = settings.transcriber
    if asked.base_url is None:
        return None
    key = asked.api_key.get_secret_value() if asked.api_key else None
    return Transcriber(asked.base_url, key, asked.model, asked.timeout_seconds)


def load_recogniser(settings: Settings) -> Recogniser | None:
    """What ocr.* asks for; None without a base_url."""
    asked = settings.ocr
    if asked.base_url is None or asked.model is None:
        return None
    key = asked.api_key.get_secret_value() if asked.api_key else None
    return Recogniser(asked.base_url, key, asked.model, asked.timeout_seconds)
