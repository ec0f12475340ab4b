"""How often the service takes for speech what is none, and how much of what is speech it misses.

    .venv/bin/python loadtests/speech_errors.py

Speech comes from espeak-ng in many languages, slow and fast, high and low, alone and under noise;
the rest is made in tests/support/sounds.py. Prints the table that stands in RESULTS.md. Exit status
1 where noise or a tone counts as speech; music does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from plugins.documents.parsing.voice_activity import SpeechFinder
from tests.support import sounds

SENTENCES = {
    "en": "The meeting begins at nine on Thursday, and Maria brings the signed contract.",
    "en-us": "Please call me back before noon, the delivery was moved to Friday.",
    "de": "Die Besprechung beginnt am Donnerstag um neun Uhr, und Maria bringt den Vertrag mit.",
    "fr": "La réunion commence jeudi à neuf heures, et Marie apporte le contrat signé.",
    "es": "La reunión empieza el jueves a las nueve y María trae el contrato firmado.",
    "it": "La riunione comincia giovedì alle nove, e Maria porta il contratto firmato.",
    "pt": "A reunião começa na quinta-feira às nove, e a Maria traz o contrato.",
    "ru": "Встреча начинается в четверг в девять часов, Мария принесёт договор.",
    "pl": "Spotkanie zaczyna się w czwartek o dziewiątej, Maria przyniesie umowę.",
    "tr": "Toplantı perşembe günü saat dokuzda başlıyor, Maria sözleşmeyi getiriyor.",
    "hi": "बैठक गुरुवार को नौ बजे शुरू होती है और मारिया अनुबंध लाएगी।",
    "cmn": "会议星期四九点开始，玛丽亚会带来合同。",
}
VOICES = ((165, 50), (120, 20), (240, 80))  # words per minute, pitch
NOISES = {
    "alone": None,
    "20 dB above white noise": (0, 20),
    "10 dB above pink noise": (1, 10),
    "5 dB above white noise": (0, 5),
}


def found(samples: np.ndarray) -> tuple[float, int]:
    """(seconds taken for speech, number of stretches)"""
    finder = SpeechFinder()
    for start in range(0, len(samples), 4_000):
        finder.feed(samples[start : start + 4_000])
    stretches = finder.stretches()
    return sum(stretch.ends - stretch.begins for stretch in stretches), len(stretches)


def under_noise(samples: np.ndarray, colour: float, decibels: float) -> np.ndarray:
    level = np.sqrt((samples.astype(float) ** 2).mean()) / 10 ** (decibels / 20)
    noise = sounds.at(sounds.noise(len(samples) / sounds.RATE + 1, colour), level)[: len(samples)]
    return np.clip(samples.astype(int) + noise, -32_768, 32_767).astype(np.int16)


def main() -> int:
    wrong = 0
    print("| not speech | seconds | taken for speech |\n|---|---|---|")
    for name, make in {
        **sounds.NOT_SPEECH,
        "music: a plucked melody": lambda: sounds.melody(10),
    }.items():
        samples = make()
        seconds, _ = found(samples)
        wrong += seconds > 0 and name in sounds.NOT_SPEECH
        print(f"| {name} | {len(samples) / sounds.RATE:.0f} | {seconds:.1f} |")
    print("\n| speech | sentences | heard | share of its seconds |\n|---|---|---|---|")
    for name, noise in NOISES.items():
        heard, shares = 0, []
        for voice, text in SENTENCES.items():
            for words_per_minute, pitch in VOICES:
                said = sounds.at(sounds.speech(text, voice, words_per_minute, pitch), 2_500)
                mixed = said if noise is None else under_noise(said, *noise)
                seconds, _ = found(mixed)
                heard += seconds > 0
                shares.append(min(1.0, seconds / (len(said) / sounds.RATE)))
        print(f"| {name} | {len(shares)} | {heard} | {np.mean(shares):.2f} |")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
