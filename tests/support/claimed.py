"""What ingestion without a language model reads in a sentence of Ada's."""

from __future__ import annotations

import asyncio

from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Said
from runtime.timestamps import parse

MAY_8 = parse("2026-05-08T12:00:00Z")


def claims(engine: RuleEngine, text: str) -> set[tuple[str, str, str, str]]:
    """(subject, predicate, object, polarity) of each fact."""
    facts = asyncio.run(engine.extract([Said("Ada", text)], MAY_8, None)).facts
    return {(fact.subject, fact.predicate, fact.object, fact.polarity) for fact in facts}
