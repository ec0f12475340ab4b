"""A checkpoint as an embedder: what it knows of words, languages and scripts.

Its tokenizer tells what it can read: a word that falls into pieces is read, one that has a piece
that the model does not know is left out. Its folder tells which languages it was taught, where it
names any; else it counts as taught all. Of slips of the fingers it knows nothing.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from runtime.inference.checkpoint.description import Checkpoint
from runtime.inference.checkpoint.model import CheckpointModel, open_tokenizer
from runtime.inference.local_embedder import LocalEmbedder, ModelWorker, Worker
from runtime.inference.minilm.embedder import latin, what_is_left
from runtime.inference.minilm.weights import Device

# The languages that queries are told apart by, and their codes in model cards.
LANGUAGES = {
    "ar": "arabic", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "fi": "finnish", "fr": "french", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "nb": "norwegian", "nl": "dutch",
    "nn": "norwegian", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
_OWN_SCRIPT = {"arabic", "armenian", "greek", "hindi", "russian", "tamil"}


class CheckpointEmbedder(LocalEmbedder):
    """A checkpoint, on a worker of this process unless another one is given."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        model_directory: Path,
        *,
        threads: int = 1,
        device: Device = "cpu",
        worker: Worker | None = None,
        timeout_seconds: float = 10.0,
        queue_max: int = 4_096,
        cache_entries: int = 4_096,
    ):
        """Blocks while the model loads, or is built into `model_directory` the first time. Raises
        ModelUnusable.
        """
        if worker is None:
            model = CheckpointModel.load(
                checkpoint, model_directory, threads=threads, device=device
            )
            self._tokenizer = model.tokenizer
            worker = ModelWorker(model)
        else:
            self._tokenizer = open_tokenizer(checkpoint)
        self._unknown = _unknown_id(self._tokenizer)
        self._languages = {LANGUAGES.get(code, code) for code in checkpoint.languages}
        self._latin_only = bool(self._languages) and self._languages <= (
            set(LANGUAGES.values()) - _OWN_SCRIPT
        )
        super().__init__(
            worker,
            space=checkpoint.space,
            width=checkpoint.width,
            timeout_seconds=timeout_seconds,
            queue_max=queue_max,
            cache_entries=cache_entries,
            prefixes=checkpoint.prefixes,
        )

    def knows(self, word: str) -> bool:
        return self._unknown not in self._tokenizer.encode(word, add_special_tokens=False).ids

    def readable(self, text: str) -> str:
        """The text without words of scripts that its languages are not written in, where its folder
        names languages of the Latin script alone; else without what it has no token for.
        """
        if self._latin_only:
            return latin(text)
        return text if text.isascii() else self._without_unknown(text)

    def taught(self, language: str) -> bool:
        return not self._languages or language in self._languages

    def _without_unknown(self, text: str) -> str:
        found = self._tokenizer.encode(text, add_special_tokens=False)
        unknown = [
            offsets
            for token, offsets in zip(found.ids, found.offsets, strict=True)
            if token == self._unknown
        ]
        if not unknown:
            return text
        kept, at = [], 0
        for start, end in unknown:
            kept.append(text[at:start])
            at = end
        return what_is_left(" ".join([*kept, text[at:]]))


def _unknown_id(tokenizer: Tokenizer) -> int:
    """The id of what stands for what the vocabulary lacks; -1 where it lacks nothing."""
    found = (tokenizer.token_to_id(name) for name in ("[UNK]", "<unk>"))
    return next((number for number in found if number is not None), -1)
