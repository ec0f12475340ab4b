"""What tests of plugins may ask for."""

from __future__ import annotations

import pytest

from plugins.collections import limits
from plugins.graph import reading, unread
from plugins.profile import store


@pytest.fixture
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put off so that it happens once for many changes happens soon: for tests that wait
    until all jobs are done.
    """
    monkeypatch.setattr(limits, "MEMBERSHIP_EVENTS_INTERVAL_MS", 20)
    monkeypatch.setattr(unread, "READING_DELAY_MS", 5)
    monkeypatch.setattr(reading, "READING_PAUSE_STEPS", 0)
    monkeypatch.setattr(reading, "READING_LOOKS_MAX", 0)
    monkeypatch.setattr(store, "PROFILE_REFRESH_DELAY_MS", 5)
