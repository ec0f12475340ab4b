"""How long the rules may go on."""

import asyncio
import threading

from plugins.ingestion import engine
from plugins.ingestion.facts import Said

SAID = [Said("Ada", "Ich wohne in Kiel."), Said("Ada", "Ich arbeite bei Acme.")]


class Interrupted(list[Said]):
    """Messages between which others have the processor for a tenth of a second."""

    def __iter__(self):
        for said in super().__iter__():
            threading.Event().wait(0.1)
            yield said


def extracted(said: list[Said]):
    return asyncio.run(engine.RuleEngine().extract(said, 0, None))


def test_time_in_which_others_have_the_processor_loses_no_facts(monkeypatch):
    whole = extracted(SAID)  # compiles the patterns, too
    monkeypatch.setattr(engine, "RULES_SECONDS_MAX", 0.08)
    assert extracted(Interrupted(SAID)) == whole
    assert not whole.degraded and len(whole.facts) == 2


def test_rules_end_when_their_processor_time_is_spent(monkeypatch):
    monkeypatch.setattr(engine, "RULES_SECONDS_MAX", 0.0)
    found = extracted(SAID)
    assert found.degraded
    assert len(found.facts) < 2
