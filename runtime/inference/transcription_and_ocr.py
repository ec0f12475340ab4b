"""Models that read what is no text: a transcriber for speech, a recogniser for pictures. Both are
optional and remote.

    Transcriber   OpenAI's /audio/transcriptions, which whisper servers speak
    Recogniser    OpenAI's /chat/completions with a picture, for a model that sees

What is tried again and how often is remote_endpoint.py's, within one time limit for all of it. What
cannot be had is ExtractionUnavailable; what the endpoint refuses for good is ExtractionRefused.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from runtime.inference.remote_endpoint import EndpointFailed, EndpointRefused, RemoteEndpoint
from runtime.limits import REMOTE_READING_ANSWER_BYTES_MAX, REMOTE_READING_ATTEMPTS_MAX

if TYPE_CHECKING:
    from runtime.settings import Settings

_READ_PICTURE = (
    "Write down all text in this picture, exactly as it stands, in reading order. "
    "Answer with the text alone, and with nothing at all if there is none."
)


class ExtractionUnavailable(Exception):
    """The endpoint is down, late, overloaded or answers nonsense; later it may do better. The
    message holds no text and no secret.
    """


class ExtractionRefused(Exception):
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


class _ReadingModel:
    """One model at one endpoint. It belongs to the event loop that uses it; close it in that
    loop.
    """

    _name: ClassVar[str]
    _section: ClassVar[str]

    def __init__(self, base_url: str, api_key: str | None, model: str, timeout_seconds: float):
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._endpoint = RemoteEndpoint(
            self._name,
            self._section,
            base_url,
            api_key,
            attempts_max=REMOTE_READING_ATTEMPTS_MAX,
            answer_bytes_max=REMOTE_READING_ANSWER_BYTES_MAX,
        )

    async def close(self) -> None:
        """Free what is held. May be called twice."""
        await self._endpoint.close()

    async def _post(self, path: str, **content: Any) -> dict[str, Any]:
        """The decoded answer. Raises ExtractionUnavailable, ExtractionRefused."""
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            answer = orjson.loads(await self._endpoint.post(path, deadline, **content))
        except (
            EndpointRefused
        ) as refused:  # the hint in its message is for operators, and tenants read this
            raise ExtractionRefused(f"the endpoint refuses with {refused.status}") from refused
        except EndpointFailed as failed:
            raise ExtractionUnavailable(str(failed)) from failed
        except TimeoutError as late:
            raise ExtractionUnavailable(
                f"{self._name} took longer than {self._timeout_seconds:g} seconds"
            ) from late
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ExtractionUnavailable(f"{self._name}'s answer is no JSON object")
        return answer


class Transcriber(_ReadingModel):
    """Speech to text, with times."""

    _name, _section = "the transcriber", "transcriber"

    async def transcribe(self, wav: bytes, seconds: float) -> Transcript:
        """A WAV file of so many seconds -> what was said in it. Raises ExtractionUnavailable,
        ExtractionRefused.
        """
        fields = {
            "model": self._model,
            "response_format": "verbose_json",
            "timestamp_granularities[]": "segment",
        }
        answer = await self._post(
            "/audio/transcriptions", files={"file": ("piece.wav", wav, "audio/wav")}, data=fields
        )
        language = answer.get("language")
        said = []
        for segment in answer.get("segments") or ():
            try:
                begins, ends, text = (
                    float(segment["start"]),
                    float(segment["end"]),
                    str(segment["text"]).strip(),
                )
            except (KeyError, TypeError, ValueError):
                raise ExtractionUnavailable(
                    "the endpoint's answer has segments without times"
                ) from None
            if text:
                said.append(Spoken(max(0.0, begins), min(max(begins, ends), seconds), text))
        whole = str(answer.get("text") or "").strip()
        if not said and whole:
            said = [Spoken(0.0, seconds, whole)]  # a server that knows no segments
        return Transcript(said, language if isinstance(language, str) else None)


class Recogniser(_ReadingModel):
    """Pictures to text."""

    _name, _section = "the recogniser", "ocr"

    async def recognise(self, jpeg: bytes) -> str:
        """The text in a picture, "" when there is none. Raises ExtractionUnavailable,
        ExtractionRefused.
        """
        picture = {
            "type": "image_url",
            "image_url": {"url": "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()},
        }
        message = {"role": "user", "content": [{"type": "text", "text": _READ_PICTURE}, picture]}
        answer = await self._post(
            "/chat/completions",
            json={"model": self._model, "temperature": 0, "messages": [message]},
        )
        try:
            return str(answer["choices"][0]["message"]["content"] or "").strip()
        except (KeyError, IndexError, TypeError):
            raise ExtractionUnavailable("the endpoint's answer has no message") from None


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
