"""Export and import: an account moves to another server and is the same there; and nothing that is
not whole is taken in.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from plugins.accounts import limits, transfer
from runtime.api.operation import Call
from runtime.errors import ValidationFailed
from runtime.limits import ITEMS_PER_LOOP_STEP
from tests.support.in_process import InProcess, in_process
from tests.support.loops import turns_of_others

ID = re.compile(r"\b([a-z]{3})_[0-9a-hjkmnp-tv-z]{32}\b")
NDJSON = {"Content_Type": "application/x-ndjson"}
# What is between a customer and one server, and does not move.
LEFT_BEHIND = {"session": 1, "subscription": 1, "usage_month": 1, "usage_day": 1}


@pytest.fixture(scope="module")
def me(here: InProcess) -> str:
    """An account that has been lived in."""
    token = here.register("ada@example.com")

    def call(method: str, path: str, body: Any = None) -> Any:
        answer = here.request(method, path, body, who=token)
        assert answer.status_code < 300, answer.text
        return answer.json()

    work = call(
        "POST",
        "/v1/collections",
        {"name": "work", "description": "At work", "metadata": {"n": [1, 2.5, None, "é\u2028"]}},
    )["id"]
    call("PATCH", f"/v1/collections/{work}", {"name": "Work"})
    call("POST", "/v1/collections", {"name": "empty"})
    call(
        "PATCH",
        f"/v1/collections/{call('GET', '/v1/collections/default')['id']}",
        {"description": "What goes nowhere else"},
    )
    full = {
        "content": "  Ada keeps the key under the flowerpot.\n", "importance": 0.9,
        "metadata": {"a": {"b": [True]}}, "title": "The key", "tags": ["home", "keys"],
        "source": "slack", "source_type": "chat", "source_reference": "https://example.com/1",
        "user_id": "ada", "agent_id": "butler", "run_id": "run-1", "app_id": "app",
        "speaker": "Ada", "occurred_at": "2020-05-08T15:56:00.123Z",
        "expires_at": "2999-01-01T00:00:00Z",
    }  # fmt: skip
    first = call("POST", "/v1/memories", full)["id"]
    call(
        "POST",
        "/v1/memories",
        {
            "messages": [{"role": "user", "content": f"message {n}"} for n in range(4)],
            "collection_id": work,
        },
    )
    call(
        "PATCH",
        f"/v1/memories/{first}",
        {"content": "Ada keeps the key in the shed.", "importance": 0.8},
    )
    call("PATCH", f"/v1/memories/{first}", {"title": None, "tags": ["shed"]})
    call(
        "POST",
        "/v1/memories/batch",
        {"memories": [{"content": f"item {n}", "session_id": "s"} for n in range(100)]},
    )
    gone = call("POST", "/v1/memories", {"content": "deleted again"})["id"]
    call("DELETE", f"/v1/memories/{gone}")
    call("POST", "/v1/auth/api-keys", {"name": "production"})
    settle(here, token)
    return token


def settle(service: InProcess, token: str) -> None:
    def ready() -> bool:
        items = service.request("GET", "/v1/memories?limit=100", who=token).json()["items"]
        return all(item["searchable"] for item in items)

    service.until(ready)


def export(service: InProcess, token: str) -> httpx.Response:
    answer = service.request("GET", "/v1/account/export", who=token)
    assert answer.status_code == 200, answer.text
    return answer


def bring(service: InProcess, token: str, body: Any, status: int = 200, **headers: str) -> Any:
    answer = service.request("POST", "/v1/account/import", body, who=token, **headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.split(b"\n")[:-1]]


def canonical(content: bytes) -> list[str]:
    """The records a restore takes in, with every id replaced by its kind and the order in which it
    first came, and without the mark of what another installation says.
    """
    seen: dict[str, str] = {}
    kept = [
        line
        for line in content.decode().split("\n")
        if '"kind":"collection"' in line or '"kind":"memory"' in line
    ]
    return [
        ID.sub(lambda found: seen.setdefault(found[0], f"{found[1]}_{len(seen)}"), line).replace(
            '"actor":"imported:', '"actor":"'
        )
        for line in kept
    ]


def test_an_export_is_whole_and_can_be_checked_by_anyone(here: InProcess, me: str) -> None:
    answer = export(here, me)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert re.fullmatch(
        r'attachment; filename="mneme-export-[\d-]{10}\.jsonl"',
        answer.headers["Content-Disposition"],
    )
    *records, manifest = lines(answer.content)
    assert manifest["kind"] == "manifest" and manifest["record"]["format"] == 1
    counts = {kind: entry["count"] for kind, entry in manifest["record"]["kinds"].items()}
    assert counts == {"account": 1, "api_key": 1, "collection": 3, "memory": 105, **LEFT_BEHIND}
    assert manifest["record"]["records"] == len(records) == sum(counts.values())
    raw = answer.content.split(b"\n")
    for kind, entry in manifest["record"]["kinds"].items():
        own = b"".join(
            line + b"\n" for line in raw if json.loads(line or b"{}").get("kind") == kind
        )
        assert hashlib.sha256(own).hexdigest() == entry["sha256"]
    assert "argon2" not in answer.text and "mem_sk_" not in answer.text.replace(
        '"prefix":"mem_sk_', ""
    )


def test_the_round_trip_is_exact(here: InProcess, there: InProcess, me: str) -> None:
    exported = export(here, me).content
    mine = there.register("ada@elsewhere.example")
    told = bring(there, mine, exported, **NDJSON)
    assert told["created"] == {"collection": 3, "memory": 105} and told["known"] == {
        "collection": 0,
        "memory": 0,
    }
    assert told["skipped"] == {"account": 1, "api_key": 1, **LEFT_BEHIND}
    settle(there, mine)
    again = export(there, mine).content
    assert canonical(again) == canonical(exported)
    # And once more, into a third account, and back home: nothing wears off.
    third = here.register("ada@third.example")
    bring(here, third, again, **NDJSON)
    settle(here, third)
    assert canonical(export(here, third).content) == canonical(exported)


def forged(exported: bytes) -> bytes:
    """As whoever has read how the manifest is made would change it."""
    *records, manifest = lines(exported)
    digests: dict[str, Any] = {}
    written = []
    for line in records:
        if line["kind"] == "memory":
            line["record"]["created_at"] = "2019-01-01T00:00:00.000Z"
        written.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        digests.setdefault(line["kind"], hashlib.sha256()).update(written[-1])
    for kind, digest in digests.items():
        manifest["record"]["kinds"][kind]["sha256"] = digest.hexdigest()
    return b"".join(written) + json.dumps(manifest).encode() + b"\n"


def actors(service: InProcess, who: str) -> list[str]:
    return [
        version["actor"]
        for line in lines(export(service, who).content)
        if line["kind"] == "memory"
        for version in line["record"]["history"]
    ]


def is_marked(service: InProcess, who: str) -> bool:
    """Whether all versions say that an import brought them; none, or all do."""
    marks = {name.startswith("imported:") for name in actors(service, who)}
    assert len(marks) == 1
    return marks.pop()


def written_in(service: InProcess, who: str) -> tuple[str, bytes]:
    """A new account, and its export from when it had one memory of two versions, now deleted."""
    source = service.register(f"{who}@example.com")
    made = service.request(
        "POST", "/v1/memories", {"content": "The key is here."}, who=source
    ).json()
    path = f"/v1/memories/{made['id']}"
    service.request("PATCH", path, {"content": "It is gone."}, who=source)
    settle(service, source)
    exported = export(service, source).content
    service.request("DELETE", path, who=source)
    return source, exported


def test_only_what_this_installation_has_signed_is_taken_at_its_word(
    here: InProcess, there: InProcess
) -> None:
    ours, theirs, marked = "", "", ""
    for number, (change, verified) in enumerate(
        [
            (lambda exported: exported, True),
            (forged, False),
            (lambda exported: b"\n".join(exported.split(b"\n")[:-2]), False),
        ]
    ):
        ours, exported = written_in(here, f"flo-{number}")
        told = bring(here, ours, change(exported), **NDJSON)
        assert (told["created"]["memory"], told["verified"]) == (1, verified)
        assert is_marked(here, ours) == (not verified)
    marked, exported = ours, export(here, ours).content
    # What was signed for one account says nothing to another, nor to another installation.
    for service, who in ((here, "flo-other"), (there, "flo-there")):
        theirs = service.register(f"{who}@elsewhere.example")
        assert not bring(service, theirs, exported, **NDJSON)["verified"]
        assert is_marked(service, theirs)
    # The mark stays, also where this installation exports it: it never knew.
    settle(here, marked)
    exported = export(here, marked).content
    [gone] = [line["record"]["id"] for line in lines(exported) if line["kind"] == "memory"]
    here.request("DELETE", f"/v1/memories/{gone}", who=marked)
    assert bring(here, marked, exported, **NDJSON)["verified"]
    assert is_marked(here, marked)


@pytest.mark.parametrize(
    ("case", "verified"),
    [
        ("as it was exported", True),
        ("a record changed", False),
        ("a record left out", False),
        ("records in another order", False),
        ("the signature of another block", False),
        ("the signature of the whole", False),
        ("a digest for a signature", False),
        ("no signature", False),
        ("another account's", False),
        ("another account's signature", False),
        ("another installation's", False),
    ],
)
def test_a_block_is_verified_by_its_own_signature(
    case: str, verified: bool, here: InProcess, there: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "IMPORT_RECORDS_PER_PART", 4)
    name = case.replace(" ", "-").replace("'", "")
    mine, exported = written_in(here, f"kim-{name}")
    _, others = written_in(here, f"pat-{name}")
    _, foreign = written_in(there, f"kim-{name}")

    def block(content: bytes) -> tuple[list[dict[str, Any]], str, dict[str, Any]]:
        """The block with the memory, its signature, and the manifest."""
        *records, manifest = lines(content)
        said = manifest["record"]
        assert said["block_records"] == 4 and len(said["blocks"]) == -(-len(records) // 4) > 1
        [at] = [at for at, line in enumerate(records) if line["kind"] == "memory"]
        return records[at // 4 * 4 :][:4], said["blocks"][at // 4], said

    records, signature, manifest = block(exported)
    other = next(each for each in manifest["blocks"] if each != signature)
    content = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in records)
    changed = json.loads(json.dumps(records).replace("It is gone.", "It is there."))
    assert len(records) > 1 and changed != records
    records, signature = {
        "a record changed": (changed, signature),
        "a record left out": (
            [line for line in records if line["kind"] == "memory"],
            signature,
        ),
        "records in another order": (records[::-1], signature),
        "the signature of another block": (records, other),
        "the signature of the whole": (records, manifest["signature"]),
        "a digest for a signature": (records, hashlib.sha256(content).hexdigest()),
        "no signature": (records, None),
        "another account's": block(others)[:2],
        "another account's signature": (records, block(others)[1]),
        "another installation's": block(foreign)[:2],
    }.get(case, (records, signature))
    told = here.request(
        "POST", "/v1/account/import/parts", {"records": records, "signature": signature}, who=mine
    ).json()
    assert (told["created"]["memory"], told["verified"]) == (1, verified)
    assert is_marked(here, mine) == (not verified)


def test_no_part_may_say_that_it_is_verified(here: InProcess) -> None:
    mine, exported = written_in(here, "lee")
    part = {"records": lines(exported)[:-1], "is_own": True}
    answer = here.request("POST", "/v1/account/import/parts", part, who=mine)
    assert (answer.status_code, answer.json()["verified"]) == (200, False)
    assert is_marked(here, mine)


def test_an_export_of_many_blocks_is_verified_part_by_part(
    here: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is sent beside the records does not grow with the export."""
    monkeypatch.setattr(limits, "IMPORT_RECORDS_PER_PART", 3)
    mine = here.register("max@example.com")
    texts = [f"Crate {number} stands in the cellar." for number in range(20)]
    here.request(
        "POST", "/v1/memories/batch", {"memories": [{"content": each} for each in texts]}, who=mine
    )
    settle(here, mine)
    *records, manifest = lines(export(here, mine).content)
    blocks = manifest["record"]["blocks"]
    assert len(set(blocks)) == len(blocks) == -(-len(records) // 3)
    for line in records:
        if line["kind"] == "memory":
            here.request("DELETE", f"/v1/memories/{line['record']['id']}", who=mine)
    created = 0
    for number, signature in enumerate(blocks):
        part = {"records": records[3 * number :][:3], "signature": signature}
        told = here.request("POST", "/v1/account/import/parts", part, who=mine).json()
        assert told["verified"]
        created += told["created"].get("memory", 0)
    assert created == len(texts) and not is_marked(here, mine)


def test_what_was_brought_can_be_used(here: InProcess, there: InProcess, me: str) -> None:
    mine = there.register("bea@elsewhere.example")
    bring(there, mine, export(here, me).content, **NDJSON)
    settle(there, mine)
    found = there.request(
        "POST", "/v1/search", {"query": "Where is the key?", "user_id": "ada"}, who=mine
    ).json()["results"]
    assert found[0]["content"] == "Ada keeps the key in the shed."
    history = there.request("GET", f"/v1/memories/{found[0]['id']}/history", who=mine).json()[
        "items"
    ]
    assert [version["version"] for version in history] == [1, 2, 3]
    assert there.request("GET", "/v1/memories?tag=shed", who=mine).json()["total_count"] == 1
    assert (
        there.request("GET", "/v1/collections?name_prefix=Wo", who=mine).json()["items"][0][
            "memory_count"
        ]
        == 4
    )
    changed = there.request(
        "PATCH",
        f"/v1/memories/{found[0]['id']}",
        {"content": "It is gone."},
        who=mine,
        If_Match='"3"',
    )
    assert changed.json()["version"] == 4
    assert there.request("GET", f"/v1/memories/{found[0]['id']}", who=me).status_code == 401


def test_profiles_are_read_again_from_what_was_brought(here: InProcess, there: InProcess) -> None:
    def facts(service: InProcess, who: str) -> list[tuple[str, str]]:
        return [
            (fact["key"], fact["value"])
            for fact in service.request("GET", "/v1/profile?user_id=zoe", who=who).json()["static"]
        ]

    told = here.register("zoe@example.com")
    here.request(
        "POST", "/v1/memories", {"content": "I live in Lisbon.", "user_id": "zoe"}, who=told
    )
    here.until(lambda: facts(here, told) == [("lives_in", "Lisbon")])
    brought = there.register("zoe@elsewhere.example")
    assert bring(there, brought, export(here, told).content, **NDJSON)["skipped"]["profile"] == 1
    there.until(lambda: facts(there, brought) == [("lives_in", "Lisbon")])


def test_importing_twice_adds_nothing(here: InProcess, there: InProcess, me: str) -> None:
    mine = there.register("cyd@elsewhere.example")
    exported = export(here, me).content
    bring(there, mine, exported, **NDJSON)
    settle(there, mine)
    before = export(there, mine).content
    told = bring(there, mine, exported, **NDJSON)
    assert told["created"] == {"collection": 0, "memory": 0} and told["known"] == {
        "collection": 3,
        "memory": 105,
    }

    def stored(content: bytes) -> list[dict]:  # what was used is written down when it is counted
        records = lines(content)[:-1]
        return [each for each in records if each["kind"] not in ("usage_day", "usage_month")]

    assert stored(export(there, mine).content) == stored(before)


def test_a_version_that_no_memory_reaches_is_refused(here: InProcess, me: str) -> None:
    (memory, *_) = (each for each in lines(export(here, me).content) if each["kind"] == "memory")
    far = {**memory, "record": {**memory["record"], "version": 2**63 - 1}}
    mine = here.register("far@example.com")
    sent = json.dumps(far).encode() + b"\n"
    answer = here.request("POST", "/v1/account/import", sent, who=mine, **NDJSON)
    assert answer.status_code == 422 and "record.version" in answer.text


def used(service: InProcess, who: str) -> int:
    return service.request("GET", "/v1/usage", who=who).json()["credits"]["used"]


def memories_of(service: InProcess, who: str, count: int) -> list[dict[str, Any]]:
    """Records of an account that has written so many memories."""
    for first in range(0, count, 100):
        written = [
            {"content": f"note {number}"} for number in range(first, min(first + 100, count))
        ]
        answer = service.request("POST", "/v1/memories/batch", {"memories": written}, who=who)
        assert answer.status_code in (201, 202), answer.text
    settle(service, who)
    return [
        line
        for line in lines(export(service, who).content)
        if line["kind"] in ("collection", "memory")
    ]


def without(records: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Without the last memories."""
    kept = [line for line in records if line["kind"] != "memory"]
    return kept + [line for line in records if line["kind"] == "memory"][:-count]


@pytest.mark.parametrize("path", ["/v1/account/import", "/v1/account/import/parts"])
def test_a_memory_that_is_brought_costs_what_a_written_one_costs(
    here: InProcess, there: InProcess, path: str
) -> None:
    name = path.rpartition("/")[2]
    records = memories_of(here, here.register(f"from-{name}@example.com"), 7)
    me = there.register(f"to-{name}@example.com")
    for brought, cost in ((without(records, 2), 5), (records, 2), (records, 0)):
        before = used(there, me)
        answer = there.request("POST", path, {"records": brought}, who=me)
        assert answer.status_code == 200, answer.text
        assert used(there, me) - before == cost


def test_an_import_costs_what_it_brought_and_no_more_than_the_month_covers(
    here: InProcess, tmp_path: Path
) -> None:
    records = memories_of(here, here.register("many@example.com"), 1_001)
    with in_process(tmp_path, billing__default_tier="free") as service:
        me = service.register("poor@example.com")

        def stored() -> int:
            return service.request("GET", "/v1/memories", who=me).json()["total_count"]

        def bring_in(brought: list[dict[str, Any]]) -> httpx.Response:
            return service.request("POST", "/v1/account/import", {"records": brought}, who=me)

        answer = bring_in(records)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "quota_exceeded")
        assert (stored(), used(service, me)) == (0, 0)
        broken = {"kind": "memory", "record": {}}
        assert bring_in([*without(records, 401), broken]).status_code == 422
        assert 0 < stored() == used(service, me)


def test_pieces_and_records_do_as_well(
    here: InProcess, there: InProcess, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "IMPORT_RECORDS_PER_PART", 7)
    mine = there.register("dot@elsewhere.example")
    exported = export(here, me).content
    raw = exported.split(b"\n")[:-2]
    told = bring(there, mine, b"\n".join(raw[:40]), **NDJSON)
    assert not told["verified"]
    bring(there, mine, {"records": [json.loads(line) for line in raw[40:]]})
    settle(there, mine)
    assert canonical(export(there, mine).content) == canonical(exported)


def test_an_import_is_checked_in_steps() -> None:
    """Each record twice: for its kind, and for the digests of the manifest."""
    records = [{"kind": "memory", "record": {"n": n}} for n in range(400)]
    manifest = {"kind": transfer.MANIFEST, "record": {"format": transfer.FORMAT, "kinds": {}}}
    body = transfer.Import.model_validate({"records": [*records, manifest]})
    call = Call("account.import", 0, 0, b"", "req_1", body=body, loaded=False)
    refused, turns = asyncio.run(turns_of_others(transfer.import_account(call, None, None)))
    assert isinstance(refused, ValidationFailed) and refused.param.endswith("kinds")
    assert turns > 2 * 400 // ITEMS_PER_LOOP_STEP


def test_a_part_has_no_more_records_than_a_transaction_of_a_whole_import(
    there: InProcess,
) -> None:
    mine = there.register("eva@elsewhere.example")
    line = {"kind": "nothing", "record": {}}
    many = [line] * (limits.IMPORT_RECORDS_PER_PART + 1)

    def status(records: list[Any]) -> int:
        body = {"records": records}
        return there.request("POST", "/v1/account/import/parts", body, who=mine).status_code

    assert (status(many[1:]), status(many)) == (200, 422)


def test_an_export_goes_on_where_it_was_interrupted(
    here: InProcess, me: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EXPORT_RECORDS_PER_PART", 9)
    records, cursor = [], ""
    while cursor is not None:
        part = here.request("GET", f"/v1/account/export/parts?cursor={cursor}", who=me).json()
        assert len(part["records"]) <= 9
        records += part["records"]
        cursor = part["next_cursor"]
        assert part["has_more"] == (cursor is not None)
        if (
            len(records) == 27
        ):  # an exported memory goes while the export is under way: nobody else moves
            extra = here.request("POST", "/v1/memories", {"content": "passing"}, who=me).json()[
                "id"
            ]
            here.request("DELETE", f"/v1/memories/{extra}", who=me)
    whole = lines(export(here, me).content)[:-1]
    assert without_counts(records) == without_counts(whole)


def without_counts(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What does not change because somebody exports, a second later."""
    return [record for record in records if not record["kind"].startswith("usage_")]


def broken_exports(whole: bytes) -> dict[str, tuple[bytes, str]]:
    """Ways an export can be less than whole, and the place the refusal names."""
    raw = whole.split(b"\n")[:-1]
    memory = next(number for number, line in enumerate(raw) if b'"kind":"memory"' in line)
    wrong_format = raw[-1].replace(b'"format":1', b'"format":2')
    last = f"body.records.{len(raw) - 1}"
    return {
        "a line is missing": (
            b"\n".join(raw[:memory] + raw[memory + 1 :]),
            f"body.records.{len(raw) - 2}.record.kinds",
        ),
        "a text was changed": (
            whole.replace(b"in the shed", b"in the shop"),
            f"{last}.record.kinds",
        ),
        "another format": (b"\n".join([*raw[:-1], wrong_format]), f"{last}.record.format"),
        "the manifest in the middle": (b"\n".join([raw[-1], *raw]), "body.records.0"),
        "an export that failed": (b"\n".join([*raw[:-1], b'{"kind":"error","record":{}}']), last),
        "a field of another type": (
            b"\n".join(
                [
                    *raw[:memory],
                    raw[memory].replace(b'"importance":0.8', b'"importance":"high"'),
                    *raw[memory + 1 : -1],
                ]
            ),
            f"body.records.{memory}.record.importance",
        ),
    }


@pytest.mark.parametrize(
    "what",
    [
        "a line is missing",
        "a text was changed",
        "another format",
        "the manifest in the middle",
        "an export that failed",
        "a field of another type",
    ],
)
def test_what_is_not_whole_is_refused_whole(
    here: InProcess, there: InProcess, me: str, what: str
) -> None:
    mine = there.register(f"{what.replace(' ', '-')}@elsewhere.example")
    body, place = broken_exports(export(here, me).content)[what]
    error = bring(there, mine, body, 422, **NDJSON)["error"]
    assert error["param"] == place
    assert there.request("GET", "/v1/memories", who=mine).json()["total_count"] == 0
    assert there.request("GET", "/v1/collections", who=mine).json()["total_count"] == 1


@pytest.mark.parametrize(
    "record",
    [{"id": "Ada's diary"}, {"id": "mem_" + "0" * 32}, {"id": "col_" + "0" * 31}, {"id": 7}, {}],
)
def test_nothing_but_an_id_becomes_an_id(there: InProcess, me: str, record: dict[str, Any]) -> None:
    """What a record calls its id becomes a key, and keys lie open on the disk."""
    mine = there.register(f"id-{len(str(record))}@elsewhere.example")
    times = {"created_at": "2020-01-01", "updated_at": "2020-01-01", "name": "x"}
    error = bring(
        there, mine, {"records": [{"kind": "collection", "record": {**times, **record}}]}, 422
    )["error"]
    assert error["param"] == "body.records.0.record.id"


def test_lines_are_read_where_they_are_expected_only(here: InProcess, me: str) -> None:
    assert (
        here.request("POST", "/v1/memories", b'{"content": "x"}\n', who=me, **NDJSON).status_code
        == 400
    )
    for body in (b"", b"[1]\n", b"{\n"):
        assert here.request("POST", "/v1/account/import", body, who=me, **NDJSON).status_code == 400


def test_both_need_the_scope_that_rules(here: InProcess, me: str) -> None:
    key = here.mint(me, "write")["key"]
    assert here.request("GET", "/v1/account/export", who=key).status_code == 403
    assert (
        here.request(
            "POST", "/v1/account/import", {"records": [{"kind": "x", "record": {}}]}, who=key
        ).status_code
        == 403
    )


def test_an_export_that_loses_its_account_says_so(
    here: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account is erased while it is being exported: the stream ends with an error and has no
    manifest.
    """
    monkeypatch.setattr(limits, "EXPORT_RECORDS_PER_PART", 2)
    mine = here.register("gone@example.com")
    for number in range(6):
        here.request("POST", "/v1/memories", {"content": f"memory {number}"}, who=mine)
    execute, parts = here.shards.execute, []

    async def erase_on_the_way(call: Any) -> Any:
        if call.operation == "account.export_part":
            parts.append(call)
            if len(parts) == 2:
                erase = here.registry.operations["account.erase"]
                query = erase.query.model_validate({"confirm": "erase-account"})
                reply = await execute(
                    type(call)(
                        erase.name,
                        call.slot,
                        call.now_ms,
                        b"e" * 32,
                        "e",
                        credential=call.credential,
                        query=query,
                    )
                )
                assert reply.status == 200
        return await execute(call)

    monkeypatch.setattr(here.shards, "execute", erase_on_the_way)
    last = lines(export(here, mine).content)[-1]
    assert (last["kind"], last["record"]["status_code"]) == ("error", 401)
