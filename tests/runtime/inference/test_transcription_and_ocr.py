from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from runtime.inference import (
    ExtractionRefused,
    ExtractionUnavailable,
    load_recogniser,
    load_transcriber,
)
from runtime.inference.transcription_and_ocr import Recogniser, Spoken, Transcriber
from runtime.settings import Settings, SettingsError
from tests.support import corpus, sounds
from tests.support.endpoints import Endpoint, endpoint
from tests.support.worlds import settings

WAV = sounds.wav(sounds.silence(2))


@pytest.fixture
def served() -> Iterator[Endpoint]:
    with endpoint() as models:
        yield models


def transcribe(models: Endpoint) -> list[Spoken]:
    return asyncio.run(Transcriber(models.url, "secret", "whisper-1", 10).transcribe(WAV, 2.0)).said


def test_segments_come_back_with_their_times(served: Endpoint) -> None:
    served.segments = [(0.1, 0.9, "One."), (0.9, 7.0, "Two."), (1.0, 1.5, " ")]
    assert transcribe(served) == [Spoken(0.1, 0.9, "One."), Spoken(0.9, 2.0, "Two.")], (
        "none ends after the piece does"
    )
    assert served.authorization == "Bearer secret"


def test_a_text_without_segments_is_one(served: Endpoint) -> None:
    served.text = " All of it. "
    assert transcribe(served) == [Spoken(0.0, 2.0, "All of it.")]
    served.text = ""
    assert transcribe(served) == []


@pytest.mark.parametrize(
    ("failures", "error"),
    [
        ([500, 503, 429], ExtractionUnavailable),
        ([400], ExtractionRefused),
        ([500, 413], ExtractionRefused),
    ],
)
def test_what_may_pass_is_tried_again_and_what_does_not_is_not(
    served: Endpoint, failures: list[int], error: type[Exception]
) -> None:
    served.failures = failures
    with pytest.raises(error) as failed:
        transcribe(served)
    assert served.failures == [] and "secret" not in str(failed.value)


def test_nobody_there_is_unavailable() -> None:
    with endpoint() as gone:
        url = gone.url
    with pytest.raises(ExtractionUnavailable):
        asyncio.run(Transcriber(url, None, "m", 5).transcribe(WAV, 2.0))


def test_a_picture_is_read(served: Endpoint) -> None:
    served.text = " INVOICE "
    assert (
        asyncio.run(Recogniser(served.url, None, "eyes", 10).recognise(corpus.picture("x", "JPEG")))
        == "INVOICE"
    )
    assert served.pictures == [(640, 200)]


def test_without_an_address_there_is_no_model() -> None:
    assert (load_transcriber(Settings()), load_recogniser(Settings())) == (None, None)
    asked = settings(
        transcriber__base_url="http://x/v1", ocr__base_url="http://x/v1", ocr__model="eyes"
    )
    assert load_transcriber(asked) is not None and load_recogniser(asked) is not None
    with pytest.raises(SettingsError, match=r"ocr\.model is missing"):
        settings(ocr__base_url="http://x/v1")
