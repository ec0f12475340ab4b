"""Recordings, with or without pictures: their subtitles, where in them there is speech, and pieces
to be transcribed.

PyAV (FFmpeg's libraries) demuxes and decodes; nothing is ever decoded that is not needed, and no
more of it than a moment is held. A file that breaks off is heard as far as it goes.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

import av
import numpy as np
from av.error import FFmpegError

from .extraction import Extraction, ParseFailed, TextBuilder
from .limits import CUES_MAX, RECORDING_SECONDS_MAX
from .subtitles import spoken
from .voice_activity import RATE, SpeechFinder, Stretch

# Formats that a file may be in, whatever it says: none that refers to other files or opens
# anything.
_DEMUXERS = "mov,mp3,wav,flac,ogg,matroska"
_SEEK_SECONDS = 2.0  # how far before a moment decoding begins: a decoder needs a run-up


@dataclass(frozen=True, slots=True)
class Heard:
    """subtitles is None where the file has none."""

    duration_seconds: float
    speech: list[Stretch]
    subtitles: Extraction | None

    def outline(self) -> dict[str, Any]:
        return {
            "duration_seconds": self.duration_seconds,
            "speech": [[stretch.begins, stretch.ends] for stretch in self.speech],
        }


def hear(file: BinaryIO) -> Heard:
    """Read a recording's subtitles, or where speech is in it. Raises ParseFailed."""
    with _opened(file) as container:
        if container.streams.subtitles:
            subtitles = _subtitles(container)
            if subtitles is not None:
                return Heard(_duration(container, 0.0), [], subtitles)
    file.seek(0)
    with _opened(file) as container:
        finder = SpeechFinder()
        if container.streams.audio:
            for _, samples in _samples(container, 0.0):
                finder.feed(samples)
                if finder.samples > RECORDING_SECONDS_MAX * RATE:
                    raise ParseFailed(
                        "too_long",
                        f"The recording is longer than {RECORDING_SECONDS_MAX // 3600} hours.",
                    )
            if not finder.samples:
                raise ParseFailed("damaged", "No sound could be decoded from the file.")
        return Heard(_duration(container, finder.samples / RATE), finder.stretches(), None)


def cut(file: BinaryIO, begins: float, ends: float) -> bytes:
    """The sound between two moments as a WAV file, 16 kHz, 16 bits, one channel."""
    pieces = []
    first, last = int(begins * RATE), int(ends * RATE)
    with _opened(file) as container:
        for position, samples in _samples(container, begins):
            if position >= last:
                break
            pieces.append(samples[max(0, first - position) : last - position])
    out = io.BytesIO()
    with wave.open(out, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(RATE)
        written.writeframes(np.concatenate(pieces).tobytes() if pieces else b"")
    return out.getvalue()


def _opened(file: BinaryIO) -> Any:
    try:
        return av.open(
            file,
            "r",
            options={"format_whitelist": _DEMUXERS, "protocol_whitelist": ""},
            metadata_errors="ignore",
        )
    except (FFmpegError, ValueError, OSError):
        raise ParseFailed(
            "damaged", "The file is not a readable recording; it is cut short or damaged."
        ) from None


def _samples(container: Any, begins: float) -> Iterator[tuple[int, np.ndarray]]:
    """(number of its first sample, samples) of the first sound track from about `begins` on: int16,
    16 kHz, one channel.
    """
    stream = container.streams.audio[0]
    stream.thread_type = "NONE"
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    if begins > _SEEK_SECONDS:
        container.seek(int((begins - _SEEK_SECONDS) * av.time_base))
    position: int | None = None if begins > _SEEK_SECONDS else 0
    for frame in chain(_frames(container, stream), (None,)):
        if position is None:
            position = 0 if frame is None or frame.time is None else round(frame.time * RATE)
        for made in resampler.resample(frame):
            samples = made.to_ndarray().reshape(-1)
            yield position, samples
            position += len(samples)


def _frames(container: Any, stream: Any) -> Iterator[Any]:
    """Decoded frames; broken packets are passed over."""
    try:
        for packet in container.demux(stream):
            try:
                yield from packet.decode()
            except FFmpegError:
                continue
    except FFmpegError:
        return  # the file breaks off here


def _subtitles(container: Any) -> Extraction | None:
    """The cues of the first subtitle track that has words in it."""
    stream = container.streams.subtitles[0]
    language = (stream.metadata or {}).get("language")
    builder, cues, last = TextBuilder(), 0, 0.0
    try:
        for packet in container.demux(stream):
            if packet.pts is None or not packet.size:
                continue
            cues += 1
            if cues > CUES_MAX:
                raise ParseFailed("too_much_text", f"The file has more than {CUES_MAX} cues.")
            begins = round(float(packet.pts * packet.time_base), 3)
            ends = round(begins + float((packet.duration or 0) * packet.time_base), 3)
            builder.add(
                spoken(_words(bytes(packet), stream.codec_context.name)),
                gap="\n",
                begins=begins,
                ends=ends,
            )
            last = max(last, ends)
    except FFmpegError:
        pass  # as far as it goes
    made = builder.done(
        transcript=True, duration_seconds=last, language=language if language != "und" else None
    )
    return made if made.text else None


def _words(packet: bytes, codec: str) -> str:
    if codec == "mov_text":
        size = int.from_bytes(packet[:2], "big")
        return packet[2 : 2 + size].decode("utf-8", "replace")
    text = packet.decode("utf-8", "replace")
    return text.split(",", 8)[-1].replace("\\N", "\n") if codec in ("ass", "ssa") else text


def _duration(container: Any, heard: float) -> float:
    """Seconds; what was heard counts more than what the file claims."""
    return round(heard or (container.duration or 0) / av.time_base, 3)
