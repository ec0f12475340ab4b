"""Two services, for what moves from one to the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.in_process import InProcess, in_process


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("here")) as service:
        yield service


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("there")) as service:
        yield service
