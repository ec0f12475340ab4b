"""What is known of the texts of a conversation by one run of the embedding model each: how they are
indexed, what they say, and so whom they mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plugins.graph import mentioned_by
from plugins.ingestion.facts import Said
from plugins.ingestion.limits import READ_CHARS_MAX
from plugins.ingestion.statements import Statement
from plugins.memories import Indexed, index_texts
from runtime.inference import InferenceUnavailable, Models, language
from runtime.long_work import aside

_Text = tuple[str | None, str]  # speaker, content


class Texts:
    """The texts of one conversation as the model has read them so far."""

    def __init__(self, models: Models):
        self._models = models
        self._known: dict[_Text, tuple[Indexed, language.Reading]] = {}
        self._failed: InferenceUnavailable | None = None

    async def take_in(self, texts: Iterable[_Text]) -> None:
        """Have the model read and index these texts, where it has not. Without a model nothing is
        known of them.
        """
        new = [
            (speaker, text)
            for speaker, text in dict.fromkeys(texts)
            if (speaker, text) not in self._known and len(text) <= READ_CHARS_MAX
        ]
        if not new or self._failed is not None:
            return
        readings: dict[str, language.Reading] = {}
        try:
            indexed = await index_texts(new, self._models, readings)
        except InferenceUnavailable as failed:
            self._failed = failed
            return
        for (speaker, text), made in zip(new, indexed, strict=True):
            self._known[speaker, text] = made, readings[text]

    async def read(self, texts: Sequence[str]) -> list[language.Reading]:
        """What each text says. Raises InferenceUnavailable."""
        if self._failed is not None:
            raise self._failed
        readings = {text: reading for (_, text), (_, reading) in self._known.items()}
        left = [text for text in dict.fromkeys(texts) if text not in readings]
        if left:
            readings |= dict(zip(left, await self._models.read_language(left), strict=True))
        return [readings[text] for text in texts]

    async def prepare(
        self, statements: Sequence[Statement], said: Sequence[Said], fields: Mapping[str, Any]
    ) -> None:
        """Give the statements their index, and whom they mention; none where the model fails.
        fields: those that all their memories have.
        """
        texts = [(said[each.source].speaker, each.text) for each in statements]
        await self.take_in(texts)
        long = [text for text in dict.fromkeys(texts) if text not in self._known]
        if long and self._failed is None:
            try:
                found = dict(zip(long, await index_texts(long, self._models), strict=True))
            except InferenceUnavailable:
                found = {}
            for each, text in zip(statements, texts, strict=True):
                each.indexed = found.get(text)
        await aside(self._prepare, statements, said, fields)

    def _prepare(
        self, statements: Sequence[Statement], said: Sequence[Said], fields: Mapping[str, Any]
    ) -> None:
        for statement in statements:
            one = said[statement.source]
            known = self._known.get((one.speaker, statement.text))
            if known is None:
                continue
            statement.indexed, reading = known
            statement.mentioned = mentioned_by(
                statement.text,
                reading,
                speaker=one.speaker,
                role=fields.get("role", one.role),
                user_id=fields.get("user_id"),
            )
