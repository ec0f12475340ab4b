"""Sounds that tests make themselves: speech by espeak-ng, and what is none. All are int16 at 16
kHz, one channel, and repeatable.
"""

from __future__ import annotations

import ctypes
import io
import os
import threading
import wave
from collections.abc import Callable
from functools import cache

import espeakng_loader
import numpy as np

RATE = 16_000
_SYNCHRONOUS, _CHARS_UTF8, _RATE_PARAMETER, _PITCH_PARAMETER = 2, 1, 1, 3
_lock = threading.Lock()


@cache
def _espeak() -> tuple[ctypes.CDLL, int]:
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(
        _SYNCHRONOUS, 0, os.fsencode(espeakng_loader.get_data_path()), 0
    )
    assert rate > 0, "espeak-ng does not start"
    return library, rate


def speech(
    text: str, voice: str = "en", words_per_minute: int = 165, pitch: int = 50
) -> np.ndarray:
    """A text, spoken."""
    library, rate = _espeak()
    pieces: list[np.ndarray] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def received(samples: ctypes.Array, count: int, _events: int) -> int:
        if samples and count > 0:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    with _lock:
        assert library.espeak_SetVoiceByName(voice.encode()) == 0, f"espeak-ng has no voice {voice}"
        library.espeak_SetParameter(_RATE_PARAMETER, words_per_minute, 0)
        library.espeak_SetParameter(_PITCH_PARAMETER, pitch, 0)
        library.espeak_SetSynthCallback(received)
        raw = text.encode()
        library.espeak_Synth(raw, len(raw) + 1, 0, 1, 0, _CHARS_UTF8, None, None)
        library.espeak_Synchronize()
        library.espeak_SetSynthCallback(None)
    return resampled(np.concatenate(pieces), rate)


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """Samples at another rate -> at RATE, by linear interpolation."""
    count = int(len(samples) * RATE / rate)
    return np.interp(np.arange(count) * rate / RATE, np.arange(len(samples)), samples).astype(
        np.int16
    )


def silence(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * RATE), np.int16)


def at(samples: np.ndarray, level: float) -> np.ndarray:
    """The same sound, its root mean square at `level` of 32,768."""
    rms = np.sqrt((samples.astype(float) ** 2).mean()) or 1.0
    return np.clip(samples * (level / rms), -32_768, 32_767).astype(np.int16)


def _times(seconds: float) -> np.ndarray:
    return np.arange(int(seconds * RATE)) / RATE


def noise(seconds: float, colour: float = 0.0, seed: int = 1) -> np.ndarray:
    """Noise whose power falls with frequency^-colour: 0 is white, 1 pink, 2 brown."""
    chance = np.random.default_rng(seed)
    spectrum = np.fft.rfft(chance.standard_normal(int(seconds * RATE)))
    frequencies = np.maximum(np.fft.rfftfreq(int(seconds * RATE), 1 / RATE), 20)
    shaped = np.fft.irfft(spectrum / frequencies ** (colour / 2))
    return at(shaped / np.abs(shaped).max() * 20_000, 3_000)


def tone(seconds: float, *hertz: float) -> np.ndarray:
    """Sines together."""
    mixed = sum(np.sin(2 * np.pi * frequency * _times(seconds)) for frequency in hertz)
    return at(mixed * 8_000, 3_000)


def sweep(seconds: float, low: float, high: float) -> np.ndarray:
    times = _times(seconds)
    return at(
        8_000 * np.sin(2 * np.pi * (low * times + (high - low) * times**2 / (2 * seconds))), 3_000
    )


def pulsed(samples: np.ndarray, per_second: float, share: float = 0.5) -> np.ndarray:
    """A sound that is on for a share of each period."""
    times = np.arange(len(samples)) / RATE
    return (samples * ((times * per_second) % 1 < share)).astype(np.int16)


def buzz(seconds: float, hertz: float) -> np.ndarray:
    """A saw tooth, as of an engine or a mains hum: all harmonics, never changing."""
    return at(((_times(seconds) * hertz) % 1 - 0.5) * 16_000, 3_000)


def melody(seconds: float, seed: int = 1) -> np.ndarray:
    """Notes of a plucked string, four a second."""
    chance = np.random.default_rng(seed)
    notes = []
    for _ in range(int(seconds * 4)):
        base, times = 220 * 2 ** (chance.integers(0, 13) / 12), _times(0.25)
        notes.append(
            sum(np.sin(2 * np.pi * base * n * times) / n for n in range(1, 5)) * np.exp(-6 * times)
        )
    return at(np.concatenate(notes) * 8_000, 3_000)


def clicks(seconds: float, per_second: float = 3) -> np.ndarray:
    samples = np.zeros(int(seconds * RATE))
    samples[:: int(RATE / per_second)] = 30_000
    return (
        np.convolve(samples, np.exp(-np.arange(80) / 12), "same")
        .clip(-32_000, 32_000)
        .astype(np.int16)
    )


_TOUCH_TONES = [(low, high) for low in (697, 770, 852, 941) for high in (1_209, 1_336, 1_477)]
NOT_SPEECH: dict[str, Callable[[], np.ndarray]] = {
    "silence": lambda: silence(10),
    "faint hiss": lambda: at(noise(10), 20),
    "white noise": lambda: noise(10),
    "loud white noise": lambda: at(noise(10), 9_000),
    "pink noise": lambda: noise(10, 1),
    "brown noise": lambda: noise(10, 2),
    "gusts of noise": lambda: pulsed(noise(10, 1), 0.7),
    "tone, 440 Hz": lambda: tone(10, 440),
    "tone, 150 Hz": lambda: tone(10, 150),
    "tone, 1 kHz": lambda: tone(10, 1_000),
    "dial tone": lambda: tone(10, 350, 440),
    "beeps": lambda: pulsed(tone(10, 900), 2),
    "ringing": lambda: pulsed(tone(10, 440, 480), 0.33),
    "touch tones": lambda: np.concatenate(
        [np.r_[tone(0.25, low, high), silence(0.15)] for low, high in _TOUCH_TONES]
    ),
    "sweep": lambda: sweep(10, 100, 4_000),
    "fast sweeps": lambda: np.concatenate([sweep(0.5, 200, 3_000)] * 20),
    "mains hum": lambda: buzz(10, 50), "engine": lambda: buzz(10, 120),
    "held chord": lambda: tone(10, 220, 277, 330, 440, 554, 660), "clicks": lambda: clicks(10),
}  # fmt: skip


def wav(samples: np.ndarray, rate: int = RATE) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype(np.int16).tobytes())
    return out.getvalue()
