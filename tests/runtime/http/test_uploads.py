"""Forms with a file in them, fed to the gateway piece by piece: what is accepted, what is refused,
and how early.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import psutil
import pytest
from pydantic import Field

from runtime.api.operation import (
    Body,
    Call,
    Idempotency,
    Reply,
    Upload,
    UploadedFile,
    Write,
)
from runtime.cluster import LocalShards
from runtime.errors import ApiError, Unavailable
from runtime.http.uploads import UploadReader
from runtime.limits import UPLOADS_AT_ONCE_MAX, UPLOADS_OF_ONE_ACCOUNT_AT_ONCE_MAX
from runtime.settings import Settings
from storage.blobs import Blob, BlobStore
from tests.support.in_process import in_process
from tests.support.served import Served, served

BOUNDARY = b"=_boundary"
TYPE = b"multipart/form-data; boundary=" + BOUNDARY
OWNER = "usr_1"
BYTES_MAX = 1_000_000
NOTICED_SECONDS_MAX = 60


class NewThing(Body):
    joined_fields: ClassVar[tuple[str, ...]] = ("tags",)

    file: UploadedFile
    name: str | None = Field(None, max_length=10)
    tags: str = ""


def media_type(head: bytes, filename: str) -> str | None:
    return None if head.startswith(b"MZ") else "text/plain"


OPERATION = Write(
    "things.upload", "POST", "/v1/things", lambda ctx, body: None, "Upload a thing",
    None, body=NewThing, upload=Upload(lambda settings: BYTES_MAX, media_type),
    idempotency=Idempotency.CACHED, scope="write",
)  # fmt: skip


def part(
    name: str, content: bytes, filename: str | None = None, header: str = "Content-Disposition"
) -> bytes:
    given = f'; filename="{filename}"' if filename is not None else ""
    return b'--%b\r\n%b: form-data; name="%b"%b\r\n\r\n%b\r\n' % (
        BOUNDARY,
        header.encode(),
        name.encode(),
        given.encode(),
        content,
    )


END = b"--" + BOUNDARY + b"--\r\n"


class Wire:
    """A client that sends a form in pieces; `sent` counts what was asked of it."""

    def __init__(self, form: bytes, piece: int = 50_000):
        self._form, self._piece = form, piece
        self.sent = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._form), self._piece):
            self.sent = start + self._piece
            yield self._form[start : start + self._piece]


def read(store: BlobStore, wire: Wire, content_type: bytes | None = TYPE) -> Any:
    return asyncio.run(
        UploadReader(OPERATION, Settings(), store).read(content_type, wire.chunks(), OWNER)
    )


def refusal(store: BlobStore, wire: Wire, content_type: bytes | None = TYPE) -> ApiError:
    with pytest.raises(ApiError) as refused:
        read(store, wire, content_type)
    assert [path for path in store.directory.rglob("*") if path.is_file()] == [], (
        "a refused file stays nowhere"
    )
    return refused.value


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path)


@pytest.mark.parametrize("piece", [1, 7, 50_000, 10_000_000])
@pytest.mark.parametrize("size", [1, 300_000])
def test_a_form_is_read_however_it_arrives(store: BlobStore, piece: int, size: int) -> None:
    if piece < 50_000 and size > 1:
        size = 2_000  # a byte at a time takes its time
    content = os.urandom(size)
    form = (
        part("name", b"Boat")
        + part("file", content, "../a/b\\Ru\u0308ck.txt")
        + part("tags", b"a")
        + part("tags", b"b,c")
        + END
    )
    body = read(store, Wire(form, piece))
    assert (body.name, body.tags) == ("Boat", "a,b,c")
    file = body.file
    assert (file.filename, file.media_type, file.size_bytes) == (
        "Ru\u0308ck.txt",
        "text/plain",
        size,
    )
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert (
        b"".join(
            store.read(OWNER, Blob(file.blob_name, file.sha256, file.size_bytes, file.blob_key))
        )
        == content
    )
    assert not {"blob_name", "blob_key"} & set(body.model_dump()["file"])


def test_too_large_is_said_before_the_file_is_whole(store: BlobStore) -> None:
    wire = Wire(part("file", bytes(20 * BYTES_MAX), "a.txt") + END)
    refused = refusal(store, wire)
    assert (refused.status, refused.code, refused.param) == (413, "document_too_large", "file")
    assert wire.sent < 1.2 * BYTES_MAX


def test_the_wrong_format_is_said_before_the_file_is_whole(store: BlobStore) -> None:
    wire = Wire(part("file", b"MZ" + bytes(BYTES_MAX - 2), "a.txt") + END)
    refused = refusal(store, wire)
    assert (refused.status, refused.code) == (415, "unsupported_format")
    assert wire.sent < 0.5 * BYTES_MAX


REFUSED: dict[str, tuple[bytes, bytes | None, int]] = {
    "no form": (b"{}", b"application/json", 400),
    "no content type": (b"", None, 400),
    "no boundary": (b"", b"multipart/form-data", 400),
    "garbage": (b"garbage without any boundary", TYPE, 400),
    "an empty file": (part("file", b"", "a.txt") + END, TYPE, 400),
    "a form that breaks off": (part("file", b"x" * 1_000, "a.txt"), TYPE, 400),
    "a large form that breaks off": (part("file", b"x" * 600_000, "a.txt"), TYPE, 400),
    "no file": (part("name", b"Boat") + END, TYPE, 422),
    "two files": (part("file", b"x", "a.txt") + part("file", b"y", "b.txt") + END, TYPE, 422),
    "a field twice": (
        part("name", b"a") + part("name", b"b") + part("file", b"x", "a.txt") + END,
        TYPE,
        422,
    ),
    "a field too long for its model": (
        part("file", b"x" * 700_000, "a.txt") + part("name", b"a" * 11) + END,
        TYPE,
        422,
    ),
    "a field far too long": (
        part("name", b"a" * 100_000) + part("file", b"x", "a.txt") + END,
        TYPE,
        400,
    ),
    "a field that is no text": (
        part("name", b"\xff\xfe") + part("file", b"x", "a.txt") + END,
        TYPE,
        400,
    ),
    "many parts": (b"".join(part(f"p{n}", b"") for n in range(30)) + END, TYPE, 400),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_form_that_cannot_be_taken_is_refused(store: BlobStore, what: str) -> None:
    form, content_type, status = REFUSED[what]
    assert refusal(store, Wire(form), content_type).status == status


def test_refused_forms_take_no_room(store: BlobStore) -> None:
    reader = UploadReader(OPERATION, Settings(), store)

    async def all_of_them() -> Any:
        for form, content_type, _ in list(REFUSED.values()) * 4:
            with pytest.raises(ApiError):
                await reader.read(content_type, Wire(form).chunks(), OWNER)
        return await reader.read(TYPE, Wire(part("file", b"x", "a.txt") + END).chunks(), OWNER)

    assert len(REFUSED) * 4 > UPLOADS_OF_ONE_ACCOUNT_AT_ONCE_MAX
    assert asyncio.run(all_of_them()).file.size_bytes == 1


def test_one_account_s_idle_uploads_keep_no_other_account_out(store: BlobStore) -> None:
    reader = UploadReader(OPERATION, Settings(), store)
    form = part("file", b"x", "a.txt") + END

    async def story() -> None:
        never = asyncio.Event()

        async def idle() -> AsyncIterator[bytes]:
            yield form[:10]
            await never.wait()

        hanging = [
            asyncio.ensure_future(reader.read(TYPE, idle(), OWNER))
            for _ in range(UPLOADS_OF_ONE_ACCOUNT_AT_ONCE_MAX)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await reader.read(TYPE, Wire(form).chunks(), OWNER)
        assert (await reader.read(TYPE, Wire(form).chunks(), "usr_2")).file.size_bytes == 1
        for upload in hanging:
            upload.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        assert (await reader.read(TYPE, Wire(form).chunks(), OWNER)).file.size_bytes == 1

    assert UPLOADS_OF_ONE_ACCOUNT_AT_ONCE_MAX * 4 <= UPLOADS_AT_ONCE_MAX
    asyncio.run(story())


def test_parts_nobody_asked_for_are_dropped(store: BlobStore) -> None:
    form = (
        part("colour", b"blue") + part("file", b"x", "a.txt") + part("other", b"y", "b.bin") + END
    )
    assert read(store, Wire(form)).file.size_bytes == 1


def test_without_a_name_it_is_a_file_all_the_same(store: BlobStore) -> None:
    assert read(store, Wire(part("file", b"x") + END)).file.filename == "file"


def test_a_quotation_mark_in_a_name_is_one(store: BlobStore) -> None:
    """As browsers and httpx send it, and as curl does."""
    for sent in ("a%22b%22 100%.txt", 'a\\"b\\" 100%.txt'):
        assert read(store, Wire(part("file", b"x", sent) + END)).file.filename == 'a"b" 100%.txt'


# --- through a real server ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(
        tmp_path_factory.mktemp("uploads") / "data", documents__max_upload_bytes=60 * 1024**2
    ) as running:
        yield running


def test_a_large_upload_costs_little_memory(service: Served) -> None:
    """50 MiB, of a kind whose processing happens elsewhere: the gateway alone is looked at, at its
    highest.
    """
    token = service.register("large@example.com")
    headers = {"Authorization": f"Bearer {token}"}
    process = psutil.Process(service.process.pid)
    warm = service.http.post(
        "/v1/documents/upload",
        files={"file": ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(5_000_000))},
        headers=headers,
    )
    assert warm.status_code == 202
    before = highest = process.memory_info().rss
    size = 50 * 1024**2
    sent = 0

    def form() -> Iterator[bytes]:
        nonlocal highest, sent
        yield (
            b'--B\r\nContent-Disposition: form-data; name="file"; '
            b'filename="b.png"\r\n\r\n\x89PNG\r\n\x1a\n'
        )
        block = os.urandom(64 * 1024)
        while sent < size:
            yield block
            sent += len(block)
            highest = max(highest, process.memory_info().rss)
        yield b"\r\n--B--\r\n"

    answer = service.http.post(
        "/v1/documents/upload",
        content=form(),
        headers={**headers, "Content-Type": "multipart/form-data; boundary=B"},
    )
    assert answer.status_code == 202 and answer.json()["document"]["size_bytes"] >= size
    assert highest - before <= 16 * 1024**2, f"{(highest - before) / 2**20:.1f} MiB"


def test_a_refused_upload_leaves_the_connection_usable(service: Served) -> None:
    token = service.register("refused@example.com")
    headers = {"Authorization": f"Bearer {token}"}
    large = {"file": ("a.txt", b"x" * (62 * 1024**2))}
    assert (
        service.http.post("/v1/documents/upload", files=large, headers=headers).status_code == 413
    )
    small = {"file": ("a.exe", b"MZ\x00\x01\x02")}
    assert (
        service.http.post("/v1/documents/upload", files=small, headers=headers).status_code == 415
    )
    unknown = {"files": {"file": ("a.txt", b"x")}, "data": {"collection_id": "col_1"}}
    assert service.http.post("/v1/documents/upload", headers=headers, **unknown).status_code == 404
    assert service.http.get("/v1/documents", headers=headers).json()["items"] == []


def test_nobody_gets_a_byte_in(service: Served) -> None:
    before = sum(1 for _ in (service.data_dir / "blobs").rglob("*"))
    answers = [
        service.http.post(
            "/v1/documents/upload", files={"file": ("a.txt", b"x" * 1_000_000)}, headers=headers
        )
        for headers in ({}, {"Authorization": "Bearer mem_sk_" + "0" * 64})
    ]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert sum(1 for _ in (service.data_dir / "blobs").rglob("*")) == before


def test_an_upload_whose_key_is_refused_leaves_no_file(service: Served) -> None:
    """The key is read once the file is there."""

    def files() -> set[Path]:
        return {path for path in (service.data_dir / "blobs").rglob("*") if path.is_file()}

    bearer, before = f"Bearer {service.register()}", files()
    refused = service.http.post(
        "/v1/documents/upload",
        files={"file": ("note.txt", b"The lamp is green.")},
        headers={"Authorization": bearer, "Idempotency-Key": "k" * 256},
    )
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "Idempotency-Key")
    assert files() == before


@pytest.mark.parametrize("raises", [False, True])
def test_the_file_of_an_upload_whose_answer_was_lost_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raises: bool
) -> None:
    """The document may be there, and here it is; what nobody refers to is swept later."""
    whole = LocalShards.execute

    async def losing(shards: LocalShards, call: Call) -> Reply:
        reply = await whole(shards, call)
        if call.operation != "documents.upload" or call.preflight:
            return reply
        if raises:
            raise Unavailable("Lost.")
        return Reply(503, error=Unavailable("Lost."))

    with in_process(tmp_path) as service:
        me = service.register("ada@example.com")
        with monkeypatch.context() as patch:
            patch.setattr(LocalShards, "execute", losing)
            lost = service.upload("note.txt", b"The lamp is green.", who=me)
            assert lost.status_code == 503
        (document,) = service.request("GET", "/v1/documents", who=me).json()["items"]
        content = service.request("GET", f"/v1/documents/{document['id']}/content", who=me)
        assert (content.status_code, content.content) == (200, b"The lamp is green.")


def test_a_client_that_leaves_leaves_nothing(service: Served) -> None:
    token = service.register("leaves@example.com")

    def form() -> Iterator[bytes]:
        yield b'--B\r\nContent-Disposition: form-data; name="file"; filename="b.txt"\r\n\r\n'
        for _ in range(20):
            yield b"x" * 100_000
        raise ConnectionAbortedError

    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "multipart/form-data; boundary=B",
    }
    with httpx.Client(base_url=service.url) as client, pytest.raises(ConnectionAbortedError):
        client.post("/v1/documents/upload", content=form(), headers=headers)
    # The next request is answered after the server has noticed; a health check then finds no
    # unfinished file.
    deadline = time.monotonic() + NOTICED_SECONDS_MAX
    service.http.get("/v1/health")
    while incoming := list((service.data_dir / "blobs").glob("*/incoming/*")):
        assert time.monotonic() < deadline, incoming
        service.http.get("/v1/health")
