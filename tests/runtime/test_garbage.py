"""What a request used is gone once it is answered, without the garbage collector: it holds the
interpreter's lock while it looks, for a tenth of a second where there is much.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.in_process import InProcess, in_process


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(Path(tmp_path_factory.mktemp("garbage"))) as running:
        yield running


@pytest.fixture(scope="module")
def account(service: InProcess) -> str:
    """Whose e-mail address is ada@example.com."""
    return service.register("ada@example.com")


@contextmanager
def uncollected() -> Iterator[Counter[str]]:
    """By type, what of the service's own nothing holds any more when this ends, but circles."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found.update(
            f"{type(each).__module__}.{type(each).__qualname__}"
            for each in gc.garbage
            if type(each).__module__.startswith(("runtime.", "storage.", "plugins."))
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_no_write_leaves_anything_to_the_collector(service: InProcess, account: str) -> None:
    with uncollected() as found:
        for number in range(10):
            made = service.request(
                "POST", "/v1/memories", {"content": f"note {number}"}, who=account
            )
            assert made.status_code == 201, made.text
    assert not found


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/memories", {"content": ""}, 422),
        ("POST", "/v1/memories", b"{", 400),
        ("GET", "/v1/memories/mem_00000000000000000000000000000000", None, 403),
        ("POST", "/v1/search", {"query": ""}, 422),
        ("PATCH", "/v1/memories/mem_00000000000000000000000000000000", {"content": "x"}, 403),
        ("POST", "/v1/auth/login", {"email": "ada@example.com", "password": "wrong one"}, 401),
    ],
)
def test_no_refusal_leaves_anything_to_the_collector(
    service: InProcess, account: str, method: str, path: str, body: object, status: int
) -> None:
    with uncollected() as found:
        for _ in range(5):
            assert service.request(method, path, body, who=account).status_code == status
    assert not found


def test_no_upload_leaves_anything_to_the_collector(service: InProcess, account: str) -> None:
    with uncollected() as found:
        for filename in ("empty.txt", "unknown.bin"):
            assert not service.upload(filename, b"", who=account).is_success
    assert not found


def test_no_stream_leaves_anything_to_the_collector(service: InProcess, account: str) -> None:
    lines = b"".join(b'{"content": "line %d"}\n' % number for number in range(150))
    with uncollected() as found:
        answer = service.request(
            "POST",
            "/v1/memories/import",
            lines,
            who=account,
            content_type="application/x-ndjson",
        )
        assert answer.text.count("created") > 150, answer.text
    assert not found
