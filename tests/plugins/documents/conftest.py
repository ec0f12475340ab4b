"""Services that read documents, with models and without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.support import sounds
from tests.support.document_harness import SPOKEN, DocumentHarness
from tests.support.endpoints import endpoint
from tests.support.in_process import in_process


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentHarness]:
    with endpoint() as models:
        further = {
            "transcriber__base_url": models.url,
            "ocr__base_url": models.url,
            "ocr__model": "eyes",
            "documents__parser_seconds": 60,
        }
        further["webhooks__allow_private_networks"] = True
        with in_process(tmp_path_factory.mktemp("documents"), **further) as service:
            yield DocumentHarness(service, service.register("ada@example.com"), models)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentHarness]:
    """A service without any model but the embedder."""
    with in_process(tmp_path_factory.mktemp("alone")) as service:
        yield DocumentHarness(service, service.register("ada@example.com"), None)


@pytest.fixture(scope="module")
def spoken() -> np.ndarray:
    return np.r_[sounds.silence(1.5), sounds.at(sounds.speech(SPOKEN), 2_500), sounds.silence(1)]
