"""Where in a recording somebody speaks.

Three questions are asked of each 30 ms of sound, at 16 kHz: does WebRTC's detector take it for
speech, has it more than one line in its spectrum (a tone, a sweep and a dial tone have few), and is
it no hiss (the spectrum of noise is flat). What passes is joined over short gaps. A stretch is
speech when enough of it passed and when its loudness and its spectrum change as syllables do: a
hum, an engine and a held chord stay as they are. loadtests/speech_errors.py says how often that is
wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import webrtcvad

RATE = 16_000
FRAME_SAMPLES = 480  # 30 ms
FRAME_SECONDS = FRAME_SAMPLES / RATE
AGGRESSIVENESS = 3

_WINDOW = np.hanning(512).astype(np.float32)
_LOW, _HIGH = 100, 4_000  # Hz: where voices are
_BINS = slice(int(_LOW * 512 / RATE), int(_HIGH * 512 / RATE))
_BANDS = 18
_TOGETHER_SAMPLES = 8 * RATE  # judged at a time: decoders hand over a few milliseconds
_QUIET_RMS = 30.0  # of 32,768: below it there is nothing to hear
_LINES_DB, _LINES_MIN = 30.0, 12  # bins within so many decibels of the strongest
_FLATNESS_MAX = 0.42
_GAP_FRAMES = 20  # joined over: 0.6 s
_SHORTEST_FRAMES = 8  # 0.24 s of what passed
_SHARE_MIN = 0.3
_LOUDNESS_DB_MIN, _SHAPE_DB_MIN = 2.5, 3.3
_MARGIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds from the beginning of the recording."""

    begins: float
    ends: float


class SpeechFinder:
    """Fed with samples as they come; keeps 24 bytes a frame, whatever the length."""

    def __init__(self) -> None:
        self._detector = webrtcvad.Vad(AGGRESSIVENESS)
        self._waiting: list[np.ndarray] = []
        self._samples_waiting = 0
        self._passed: list[np.ndarray] = []
        self._loudness: list[np.ndarray] = []
        self._shapes: list[np.ndarray] = []
        self.samples = 0

    def feed(self, samples: np.ndarray) -> None:
        """int16 samples at 16 kHz, one channel."""
        self.samples += len(samples)
        self._waiting.append(samples)
        self._samples_waiting += len(samples)
        if self._samples_waiting >= _TOGETHER_SAMPLES:
            self._judge_waiting()

    def stretches(self) -> list[Stretch]:
        """Where there is speech, in order."""
        if self._waiting:
            self._judge_waiting()
        if not self._passed:
            return []
        passed, loudness, shapes = (
            np.concatenate(parts) for parts in (self._passed, self._loudness, self._shapes)
        )
        found = []
        for first, last in _joined(np.flatnonzero(passed)):
            inside = np.flatnonzero(passed[first : last + 1]) + first
            if (
                len(inside) >= _SHORTEST_FRAMES
                and len(inside) >= _SHARE_MIN * (last + 1 - first)
                and _varies(loudness, shapes, first, last)
            ):
                end = min((last + 1) * FRAME_SECONDS + _MARGIN_SECONDS, self.samples / RATE)
                found.append(
                    Stretch(
                        max(0.0, round(first * FRAME_SECONDS - _MARGIN_SECONDS, 2)), round(end, 2)
                    )
                )
        return found

    def _judge_waiting(self) -> None:
        samples = np.concatenate(self._waiting)
        whole = len(samples) // FRAME_SAMPLES
        self._waiting = [samples[whole * FRAME_SAMPLES :]]
        self._samples_waiting = len(self._waiting[0])
        if whole:
            self._judge(samples[: whole * FRAME_SAMPLES].reshape(whole, FRAME_SAMPLES))

    def _judge(self, frames: np.ndarray) -> None:
        voiced = np.array([self._detector.is_speech(frame.tobytes(), RATE) for frame in frames])
        padded = np.zeros((len(frames), 512), np.float32)
        padded[:, :FRAME_SAMPLES] = frames
        power = np.abs(np.fft.rfft(padded * _WINDOW, axis=1)[:, _BINS]) ** 2 + 1.0
        decibels = 10 * np.log10(power)
        lines = (decibels > decibels.max(axis=1, keepdims=True) - _LINES_DB).sum(axis=1)
        flatness = np.exp(np.log(power).mean(axis=1)) / power.mean(axis=1)
        loud = np.sqrt((frames.astype(np.float32) ** 2).mean(axis=1))
        self._passed.append(
            voiced & (lines >= _LINES_MIN) & (flatness <= _FLATNESS_MAX) & (loud >= _QUIET_RMS)
        )
        self._loudness.append((20 * np.log10(loud + 1)).astype(np.float32))
        bands = np.stack(
            [part.mean(axis=1) for part in np.array_split(decibels, _BANDS, axis=1)], axis=1
        )
        self._shapes.append((bands - bands.mean(axis=1, keepdims=True)).astype(np.float16))


def _joined(indexes: np.ndarray) -> list[tuple[int, int]]:
    """Ascending numbers of frames -> (first, last) of each run, gaps included that are short."""
    if not len(indexes):
        return []
    ends = np.flatnonzero(np.diff(indexes) > _GAP_FRAMES)
    firsts, lasts = indexes[np.r_[0, ends + 1]], indexes[np.r_[ends, len(indexes) - 1]]
    return [(int(first), int(last)) for first, last in zip(firsts, lasts, strict=True)]


def _varies(loudness: np.ndarray, shapes: np.ndarray, first: int, last: int) -> bool:
    """Whether loudness and spectrum change inside a stretch as they do when somebody speaks."""
    within = slice(max(0, first - 3), last + 4)
    heard = loudness[within] > loudness[within].max() - 30
    return (
        loudness[within].std() >= _LOUDNESS_DB_MIN
        and shapes[within][heard].astype(np.float32).std(axis=0).mean() >= _SHAPE_DB_MIN
    )
