"""An endpoint that plays the language model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import upstream
from tests.support.upstream import Upstream


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Upstream]:
    with upstream.upstream() as server:
        yield server
