"""A hundred thousand characters of many kinds of text to every text field of every body, over HTTP,
while a neighbour reads, and does not wait long. Jobs are waited for where a memory has the text,
which is where they read one.

A wait is measured in processor time, which a busy machine does not change: what the thread of the
event loop computed between the neighbour's question and the answer, and what all threads did.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
import pytest

import serve_app
from tests.support.kinds_of_text import UNITS, text_of
from tests.support.over_http import OverHttp, over_http

CHARS = 100_000
LOOP_SECONDS_MAX = 0.25
ALL_SECONDS_MAX = 0.5  # of all threads, of which several compute at a time
KINDS_IN_TURN = 4  # of which a memory is given one, unless all are asked for
OWN_PATH = "/v1/memories/{id}"
Path = tuple[str | int, ...]


class Field(NamedTuple):
    """A place in an operation's body that takes a text. longest: characters that it takes."""

    operation: str
    path: Path
    longest: int


def leaves(schema: dict[str, Any], root: dict[str, Any], path: Path = ()) -> Iterator[Any]:
    """(path, the longest text that it takes or None) of every text in a body; of an object without
    declared fields, of one field.
    """
    schema = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from leaves(option, root, path)
    kind = schema.get("type")
    if kind == "string" and "enum" not in schema and "const" not in schema:
        yield path, schema.get("maxLength")
    if kind == "array":
        yield from leaves(schema.get("items", {}), root, (*path, 0))
    if kind == "object" and not schema.get("properties"):
        yield (*path, "x"), None
    for name, field in schema.get("properties", {}).items():
        yield from leaves(field, root, (*path, name))


def fields() -> list[Field]:
    found: dict[Field, None] = {}
    for operation in serve_app.registry().operations.values():
        if operation.body is not None and not operation.internal:
            schema = operation.body.model_json_schema()
            for path, longest in leaves(schema, schema):
                found[Field(operation.name, path, min(longest or CHARS, CHARS))] = None
    return list(found)


def placed(value: Any, path: Path, text: str) -> Any:
    """The body with the text at this place, which is made where it is not there."""
    if not path:
        return text
    head, rest = path[0], path[1:]
    if head == 0:
        items = list(value) if isinstance(value, list) and value else [None]
        return [placed(items[0], rest, text), *items[1:]]
    members = dict(value) if isinstance(value, dict) else {}
    return {**members, head: placed(members.get(head), rest, text)}


CONTENT = Field("memories.create_raw", ("content",), CHARS)


class Asker:
    """Sends texts to fields. asked: the last of it."""

    def __init__(self, service: OverHttp):
        self.service = service
        self.ada = service.register("ada@example.com")
        self.memory = service.remember(self.ada, "a memory")[0]
        eve = service.register("eve@example.com")
        self.neighbours = f"/v1/memories/{service.remember(eve, 'mine')[0]}"
        self.neighbour = {"Authorization": f"Bearer {eve}"}
        self.asked = "nothing"

        async def thread() -> int:
            return threading.get_ident()

        self._loop_clock = time.pthread_getcpuclockid(service.run(thread()))

    def computed(self) -> tuple[float, float]:
        """Processor time of the loop's thread and of all threads, seconds."""
        return time.clock_gettime(self._loop_clock), time.process_time()

    def send(self, field: Field, kind: str, chars: int) -> None:
        operation = self.service.registry.operations[field.operation]
        path = re.sub(
            r"\{\w+\}", "x", operation.path.replace(OWN_PATH, OWN_PATH[:-4] + self.memory)
        )
        body = placed(copy.deepcopy(operation.example) or {}, field.path, text_of(kind, chars))
        self.asked = f"{field.operation} {'.'.join(map(str, field.path))}: {chars} of {kind}"
        answer = self.service.http.request(
            operation.method, path, json=body, headers={"Authorization": f"Bearer {self.ada}"}
        )
        assert answer.status_code not in (500, 502, 504), f"{self.asked}: {answer.text}"

    def settle(self) -> None:
        """Until all jobs have run."""

        async def is_idle() -> bool:
            """Looked at for a second, however long the jobs take on a busy machine."""
            for _ in range(100):
                if not (await self.service.shard.status())["jobs_waiting"]:
                    return True
                await asyncio.sleep(0.01)
            return False

        while not self.service.run(is_idle()):
            pass


@contextmanager
def reading(asker: Asker) -> Iterator[list[str]]:
    """A neighbour who reads on; -> what it had to wait for too long."""
    waited, over = list[str](), threading.Event()

    def read() -> None:
        given = {"base_url": asker.service.url, "headers": asker.neighbour, "timeout": None}
        with httpx.Client(**given) as client:
            while not over.wait(0.01):
                began = asker.computed()
                assert client.get(asker.neighbours).status_code == 200
                loop, every = (
                    now - then for now, then in zip(asker.computed(), began, strict=True)
                )
                if loop > LOOP_SECONDS_MAX or every > ALL_SECONDS_MAX:
                    waited.append(f"{asker.asked}: {loop:.3f} s of the loop, {every:.3f} s in all")

    with ThreadPoolExecutor(1) as threads:
        neighbour = threads.submit(read)
        try:
            yield waited
        finally:
            over.set()
            neighbour.result()


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    gc.collect()
    gc.freeze()  # what the tests have loaded is no part of the service's steps
    limits = {"limits__requests_per_minute": 0, "limits__endpoint_caps": False}
    with over_http(tmp_path_factory.mktemp("kinds"), None, **limits) as service:
        yield Asker(service)
    gc.unfreeze()


def held(asker: Asker, asked: list[tuple[Field, str]]) -> None:
    """Send each kind to its field, whole and as long as it takes it."""
    with reading(asker) as waited:
        for field, kind in asked:
            for chars in {CHARS, field.longest}:
                asker.send(field, kind, chars)
    assert not waited, "\n".join(waited)


def test_there_are_sixty_kinds_and_fields_of_all_features() -> None:
    assert len(UNITS) >= 60 and len({unit * 9 for unit in UNITS.values()}) == len(UNITS)
    assert len(fields()) > 100


def test_no_text_in_a_memory_keeps_a_neighbour_waiting(asker: Asker) -> None:
    with reading(asker) as waited:
        for kind in list(UNITS)[::KINDS_IN_TURN]:
            asker.send(CONTENT, kind, CHARS)
            asker.settle()
    assert not waited, "\n".join(waited)


def test_no_text_field_keeps_a_neighbour_waiting(asker: Asker) -> None:
    """Kinds in turn, so that each meets some fields."""
    kinds = list(UNITS)
    asked = [(field, kinds[place % len(kinds)]) for place, field in enumerate(fields())]
    held(asker, asked)


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", UNITS)
def test_no_text_of_any_kind_in_any_field_keeps_a_neighbour_waiting(
    asker: Asker, kind: str
) -> None:
    held(asker, [(field, kind) for field in fields()])
