"""What is computed from a text is as safe as the text: vectors of texts and of their words lie
nowhere open, neither in the data directory nor in the object store, and go with the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zstandard

from plugins.memories import MEMORY_VECTORS, MEMORY_WORDS
from storage.replication.snapshots import snapshots
from storage.store import KeyShredded
from tests.support.cut_off import of_shard
from tests.support.in_process import InProcess, in_process

TEXTS = (
    "The doctor confirms the diagnosis of diabetes on Tuesday.",
    "Margaret told her lawyer that the settlement includes a sailing boat.",
)


def stored_bytes(*places: Path) -> bytes:
    """Everything under these places, unpacked where it is packed."""

    def contents() -> Iterator[bytes]:
        for path in (path for place in places for path in place.rglob("*") if path.is_file()):
            raw = path.read_bytes()
            yield raw
            packed = raw[40:] if raw.startswith(b"mnemelg1") else raw
            if packed.startswith(zstandard.FRAME_HEADER):
                yield zstandard.ZstdDecompressor().decompressobj().decompress(packed)

    return b"\0".join(contents())


def derived(service: InProcess) -> list[bytes]:
    """What the model makes of the texts: their vectors, and those of the words as they are kept."""

    async def computed() -> list[np.ndarray]:
        return list(await service.embedder.embed(TEXTS))

    with service.shard.store.snapshot() as snapshot:
        scope = next(scope for scope in snapshot.scopes() if scope.tenant)
        words = [raw for _, raw in snapshot.bind(MEMORY_WORDS.words, scope).scan()]
    vectors = [vector.astype("<f4").tobytes() for vector in service.run(computed())]
    assert len(words) == len(vectors) == len(TEXTS) and all(map(len, words))
    return [*vectors, *words]


def test_no_vector_lies_open_here_or_in_the_object_store_and_none_opens_after_an_erasure(
    tmp_path: Path,
) -> None:
    data, objects = tmp_path / "data", tmp_path / "objects"
    with in_process(data) as first:
        who = first.register("ada@example.org")
        first.request("POST", "/v1/memories", {"content": TEXTS[0]}, who=who)
        first.settle()
    options = {"object_store__url": f"file://{objects}", "object_store__ship_interval_ms": 5}
    with in_process(data, secrets=first.secrets, **options) as service:
        shard = of_shard(service, objects)
        service.until(lambda: bool(snapshots(shard)))
        service.request("POST", "/v1/memories", {"content": TEXTS[1]}, who=who)
        service.settle()
        service.until(lambda: service.log()["unshipped_records"] == 0)
        store = service.shard.store
        secret = derived(service)
        kept = stored_bytes(data, objects)
        assert store.identity.cluster_id.encode() in kept, "what is stored is looked through"
        assert [raw for raw in secret if raw in kept] == []

        with store.snapshot() as snapshot:
            scope = next(scope for scope in snapshot.scopes() if scope.tenant)
            rows = [
                row
                for table in (MEMORY_VECTORS.vectors, MEMORY_WORDS.words)
                for row in snapshot.bind_at(
                    table, scope, (store.places[table.name][0], False)
                ).items()
            ]
        assert len(rows) == len(secret) and all(raw in kept for _, raw in rows)
        answer = service.request("DELETE", "/v1/account?confirm=erase-account", who=who)
        receipt = {"receipt": answer.json()["receipt"]}
        service.until(
            lambda: (
                service.request("POST", "/v1/account/receipts", receipt).json()["status"]
                == "completed"
            )
        )
        service.until(lambda: service.log()["unshipped_records"] == 0)
        assert [raw for raw in secret if raw in stored_bytes(data, objects)] == []
        assert store.keys is not None and store.keys.is_shredded(scope.prefix)
        for place, raw in rows:
            with pytest.raises(KeyShredded):
                store.keys.unseal(scope.prefix, place, raw)
