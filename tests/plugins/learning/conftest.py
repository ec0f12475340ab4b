"""What several tests of outcome memory compare with."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.fixture
def stats() -> ModuleType:
    """SciPy's distributions, loaded when they are needed: every worker lists all tests."""
    from scipy import stats

    return stats
