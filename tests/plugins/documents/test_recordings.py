"""Recordings and pictures: transcripts, subtitles, and what is read from a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from runtime.shard import verification
from tests.support import corpus, sounds
from tests.support.document_harness import SPOKEN, DocumentHarness
from tests.support.in_process import in_process

pytestmark = pytest.mark.usefixtures("without_delay")


@pytest.mark.parametrize("extension", ["ogg", "mp4"])
def test_speech_becomes_a_transcript_with_times(
    reader: DocumentHarness, spoken: np.ndarray, extension: str
) -> None:
    reader.models.segments = [
        (0.2, 2.0, "The meeting begins at nine on Thursday,"),
        (2.0, 4.4, "and Maria brings the signed contract."),
    ]
    reader.models.language, before = "english", len(reader.models.seconds)
    document = reader.processed(f"meeting.{extension}", corpus.recording(spoken, extension))
    assert (document["status"], document["result"]) == (
        "completed",
        {"kind": "transcript", "language": "english"},
    )
    assert document["duration_seconds"] == pytest.approx(len(spoken) / sounds.RATE, abs=0.1)
    (sent,) = reader.models.seconds[before:]
    assert sent == pytest.approx(len(spoken) / sounds.RATE - 2.5 + 0.4, abs=0.3), (
        "the silence around the speech is left out"
    )
    (chunk,) = reader.chunks(document)
    assert (
        chunk["content"]
        == "The meeting begins at nine on Thursday,\nand Maria brings the signed contract."
    )
    assert chunk["start_seconds"] == pytest.approx(1.5, abs=0.15)
    assert chunk["end_seconds"] == pytest.approx(1.3 + 4.4, abs=0.15)


def test_a_long_recording_is_transcribed_piece_by_piece(reader: DocumentHarness) -> None:
    said = sounds.at(sounds.speech(SPOKEN), 2_500)
    pieces = [np.r_[said, sounds.silence(40)] for _ in range(3)]
    reader.models.segments, before = [(0.0, 3.0, "So it was said.")], len(reader.models.seconds)
    document = reader.processed("long.flac", corpus.recording(np.concatenate(pieces), "flac"))
    assert len(reader.models.seconds) - before == 3
    (chunk,) = reader.chunks(document)
    assert chunk["content"] == "\n".join(["So it was said."] * 3)
    assert chunk["end_seconds"] == pytest.approx(2 * len(pieces[0]) / sounds.RATE + 3, abs=0.5)


@pytest.mark.parametrize("what", ["silence", "white noise", "tone, 440 Hz", "dial tone"])
def test_what_is_no_speech_needs_no_transcriber(alone: DocumentHarness, what: str) -> None:
    document = alone.processed(
        f"{what[:4]}.wav", corpus.recording(sounds.NOT_SPEECH[what](), "wav")
    )
    assert (document["status"], document["chunk_count"]) == ("completed", 0)
    assert document["result"] == {"kind": "no_speech_detected", "language": None}


def test_speech_without_a_transcriber_fails(alone: DocumentHarness, spoken: np.ndarray) -> None:
    document = alone.processed("meeting.wav", corpus.recording(spoken, "wav"))
    assert (document["status"], document["error"]["reason"]) == (
        "failed",
        "transcription_unavailable",
    )
    assert document["result"] is None


def test_subtitles_beside_a_recording_are_its_transcript(
    alone: DocumentHarness, spoken: np.ndarray
) -> None:
    here, elsewhere = alone.collection("beside"), alone.collection("elsewhere")
    alone.processed("Talk.en.srt", corpus.SRT.encode(), collection_id=here)
    for name in ("talk.wav", "TALK.mp3"):
        document = alone.processed(
            name, corpus.recording(spoken, name[-3:].lower()), collection_id=here
        )
        assert document["result"] == {"kind": "transcript", "language": None}, document
        (chunk,) = alone.chunks(document)
        assert (chunk["start_seconds"], chunk["end_seconds"]) == (
            1.5,
            3_725.0,
        ) and "ferry" in chunk["content"]
    document = alone.processed("talk.wav", corpus.recording(spoken, "wav"), collection_id=elsewhere)
    assert document["error"]["reason"] == "transcription_unavailable", (
        "what lies in another collection lies not beside it"
    )


def test_subtitles_that_come_later_help_a_recording_that_failed(
    alone: DocumentHarness, spoken: np.ndarray
) -> None:
    here = alone.collection("later")
    document = alone.processed("speech.flac", corpus.recording(spoken, "flac"), collection_id=here)
    assert document["error"]["reason"] == "transcription_unavailable"
    alone.processed("speech.vtt", corpus.VTT.encode(), collection_id=here)
    alone.service.until(
        lambda: alone("GET", f"/v1/documents/{document['id']}")["status"] == "completed"
    )
    assert alone("GET", f"/v1/documents/{document['id']}")["result"]["kind"] == "transcript"


def test_subtitles_that_come_while_a_recording_is_read_are_its_transcript(
    alone: DocumentHarness, spoken: np.ndarray
) -> None:
    service, here = alone.service, alone.collection("meanwhile")
    asked = {"who": alone.token, "collection_id": here}
    sound = service.upload("speech.flac", corpus.recording(spoken, "flac"), **asked).json()
    service.until(lambda: alone("GET", sound["status_url"])["status"] != "pending")
    service.upload("speech.vtt", corpus.VTT.encode(), **asked)
    service.until(lambda: alone("GET", sound["status_url"])["status"] in ("completed", "failed"))
    alone.idle()
    assert alone("GET", sound["status_url"])["status"] == "completed"


def test_a_recording_that_comes_again_under_another_name_has_that_names_subtitles(
    tmp_path: Path, spoken: np.ndarray
) -> None:
    with in_process(tmp_path) as service:
        alone = DocumentHarness(service, service.register("ada@example.com"), None)
        sound = corpus.recording(spoken, "wav")
        assert alone.processed("draft.wav", sound)["status"] == "failed"
        again = service.upload("talk.wav", sound, who=alone.token).json()["status_url"]
        alone.idle()
        other = corpus.VTT.replace("\n\n", "\n\nNOTE another\n\n", 1).encode()
        alone.processed("draft.vtt", other)
        alone.idle()
        assert alone("GET", again)["status"] == "failed"
        alone.processed("talk.vtt", corpus.VTT.encode())
        service.until(lambda: alone("GET", again)["status"] == "completed")
        alone.idle()
        shard = service.shard
        with shard.store.snapshot() as snapshot:
            for account in verification.accounts(snapshot):
                given = snapshot, shard.environment, account, shard.parts.now_ms()
                assert list(verification.examine(*given)) == [], "credits and fields agree"


def test_subtitles_that_cannot_be_read_are_passed_over(
    alone: DocumentHarness, spoken: np.ndarray
) -> None:
    here = alone.collection("unreadable")
    assert alone.processed("note.srt", b"no times at all", collection_id=here)["status"] == "failed"
    document = alone.processed("note.wav", corpus.recording(spoken, "wav"), collection_id=here)
    assert document["error"]["reason"] == "transcription_unavailable"


@pytest.mark.parametrize("extension", ["mp4", "mov"])
def test_a_track_of_subtitles_is_the_transcript_of_a_film(
    alone: DocumentHarness, spoken: np.ndarray, extension: str
) -> None:
    """As MP4 and MOV have them: timed text in a track of its own."""
    document = alone.processed(
        f"film.{extension}",
        corpus.film(extension, [(1.5, 3.0, "Good morning."), (10.0, 12.5, "It is ten o'clock.")]),
    )
    assert document["result"]["kind"] == "transcript"
    (chunk,) = alone.chunks(document)
    assert chunk["content"] == "Good morning.\nIt is ten o'clock."
    assert (chunk["start_seconds"], chunk["end_seconds"]) == (1.5, 12.5)


def test_a_track_of_subtitles_is_the_transcript(alone: DocumentHarness) -> None:
    document = alone.processed(
        "film.webm",
        corpus.subtitled([(1.5, 3.0, "Good morning."), (10.0, 12.5, "It is <i>ten</i> o'clock.")]),
    )
    assert document["result"] == {"kind": "transcript", "language": "eng"}
    (chunk,) = alone.chunks(document)
    assert chunk["content"] == "Good morning.\nIt is ten o'clock."
    assert (chunk["start_seconds"], chunk["end_seconds"]) == (1.5, 12.5)


def test_an_endpoint_that_fails_is_asked_again(reader: DocumentHarness, spoken: np.ndarray) -> None:
    reader.models.segments, reader.models.text, reader.models.failures = (
        [],
        "Said in one go.",
        [503, 429],
    )
    document = reader.processed(
        "again.wav", corpus.recording(np.r_[spoken, sounds.silence(0.5)], "wav")
    )
    assert document["status"] == "completed"
    assert reader.chunks(document)[0]["content"] == "Said in one go."
    reader.models.failures = [401]
    refused = reader.processed(
        "refused.wav", corpus.recording(np.r_[spoken, sounds.silence(0.7)], "wav")
    )
    assert refused["error"]["reason"] == "model_refused"


def test_pictures_are_read_where_a_model_can(
    reader: DocumentHarness, alone: DocumentHarness
) -> None:
    reader.models.text = "INVOICE 4711"
    for kind in ("png", "jpeg", "webp"):
        document = reader.processed(
            f"invoice.{kind}", corpus.picture(f"INVOICE {kind}", kind.upper())
        )
        assert (document["status"], document["page_count"], document["media_type"]) == (
            "completed",
            1,
            f"image/{kind}",
        )
        assert reader.text(document) == "INVOICE 4711"
    refused = alone.processed("invoice.png", corpus.picture())
    assert (refused["status"], refused["error"]["reason"]) == ("failed", "ocr_unavailable")


def test_a_scanned_pdf_is_read_page_by_page_or_fails(
    reader: DocumentHarness, alone: DocumentHarness
) -> None:
    reader.models.text = "A scanned page."
    document = reader.processed("scan.pdf", corpus.scanned_pdf(5))
    assert reader.text(document) == "\n\n".join(["A scanned page."] * 5)
    assert [chunk["page"] for chunk in reader.chunks(document)] == [1, 2, 3, 4, 5]
    refused = alone.processed("scan.pdf", corpus.scanned_pdf(1))
    assert (refused["status"], refused["error"]["reason"]) == ("failed", "ocr_unavailable")
