"""What a tenant's context leads to, and what it does not: by public names, to no other's rows."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import serve_app
from runtime.api import tenants
from runtime.api.context import Environment, ReadContext, WriteContext
from runtime.api.operation import NOBODY, Call, Idempotency, Read, Write
from runtime.api.plugin import Plugin, Registry, RegistryError
from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.installation import Secrets
from storage.store import Reader, Scope, Store, Table
from tests.support.shard_harness import ShardHarness

NOTES: Table[bytes] = Table("spy_notes", key=("number",), row=bytes, doc="what a tenant noted")
INNER = (Reader, Store, Environment, Secrets, SlotReadContext)
OURS = ("storage", "runtime", "plugins")
PLAIN = (types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, type)

Work = Callable[[Any], Any]


class Spy:
    """A plugin whose two operations do whatever the test says."""

    def __init__(self) -> None:
        self.work: Work = lambda ctx: None
        self.plugin = Plugin(
            "spy",
            tables=(NOTES,),
            operations=(
                Read("spy.read", "GET", "/v1/spy", self._run, "Look", None, statuses=(204,)),
                Write(
                    "spy.write",
                    "POST",
                    "/v1/spy",
                    self._run,
                    "Do",
                    None,
                    statuses=(204,),
                    scope="write",
                    idempotency=Idempotency.CACHED,
                ),
            ),
        )

    def _run(self, ctx: ReadContext, body: None) -> None:
        self.work(ctx)


class Room:
    """A shard with every plugin and the spy, and two accounts in it."""

    def __init__(self, directory: Path):
        self.spy = Spy()
        self.harness = ShardHarness(directory, (*serve_app.PLUGINS, self.spy.plugin))
        self.ada, self.bob = (
            self.harness.register(),
            self.harness.register("bob@example.com", "Bob"),
        )

    def within(self, operation: str, work: Work, who: str | None = None) -> Any:
        """What `work` makes of the context that the operation's handler is given."""
        made: list[Any] = []
        self.spy.work = lambda ctx: made.append(work(ctx))
        assert self.harness(operation, who=who or self.ada).status == 204
        return made[-1]

    def of_slot(self, scope: Scope, work: Callable[[SlotWriteContext], None]) -> None:
        """Have `work` done in a transaction, with the context of a whole slot."""
        shard = self.harness.shard
        call = Call("test", scope.slot, self.harness.now_ms, os.urandom(32), "test")
        shard.store.write(
            lambda transaction: work(
                SlotWriteContext(transaction, scope, call, shard.environment, NOBODY)
            )
        )


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    opened = Room(tmp_path_factory.mktemp("room"))
    yield opened
    opened.harness.close()


def reached(thing: Any, way: str, seen: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    """Every object that public names lead to, with the way there."""
    if id(thing) in seen or isinstance(thing, PLAIN):
        return
    seen[id(thing)] = thing  # kept, so that no other object gets its id
    yield way, thing
    if isinstance(thing, Mapping):
        inside = {f"{way}[{key!r}]": value for key, value in thing.items()}
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inside = {f"{way}[{place}]": value for place, value in enumerate(thing)}
    elif type(thing).__module__.partition(".")[0] in OURS:
        names = type(thing).model_fields if isinstance(thing, BaseModel) else dir(thing)
        inside = {f"{way}.{name}": getattr(thing, name, None) for name in names if name[0] != "_"}
    else:
        return
    for further, value in inside.items():
        yield from reached(value, further, seen)


@pytest.mark.parametrize("operation", ["spy.read", "spy.write"])
def test_no_public_name_leads_out_of_the_tenants_rows(room: Room, operation: str) -> None:
    def walk(ctx: ReadContext) -> list[str]:
        tables = [ctx[table] for table in ctx.registry.tables.values() if table.level == "tenant"]
        indexes = [ctx.index(index) for index in ctx.registry.indexes.values()]
        assert len(tables) > 50
        assert len(indexes) > 5
        found = list(reached([ctx, tables, indexes], "", {}))
        assert len(found) > 1_000, "the walk came to an end too soon"
        return [way for way, thing in found if isinstance(thing, INNER)]

    assert room.within(operation, walk) == []


@pytest.mark.parametrize("operation", ["spy.read", "spy.write"])
def test_a_handler_cannot_take_on_another_tenants_scope(room: Room, operation: str) -> None:
    room.within("spy.write", lambda ctx: ctx[NOTES].put((1,), b"bob's"), room.bob)
    theirs = room.harness.scope_of(room.bob)

    def attempt(ctx: ReadContext) -> None:
        with pytest.raises(AttributeError):
            ctx.scope = theirs
        for name in ("reader", "environment", "secrets", "as_tenant", "within", "store"):
            assert not hasattr(ctx, name), name
        assert ctx[NOTES].get(1) is None
        assert ctx.scope != theirs

    room.within(operation, attempt)


@pytest.mark.parametrize("operation", ["spy.read", "spy.write"])
def test_tables_with_the_rows_of_a_whole_slot_are_out_of_reach(room: Room, operation: str) -> None:
    def attempt(ctx: ReadContext) -> list[str]:
        tables = [table for table in ctx.registry.tables.values() if table.level == "slot"]
        for table in tables:
            with pytest.raises(PermissionError):
                ctx[table]
        return [table.name for table in tables]

    names = room.within(operation, attempt)
    assert {"tenants", "emails", "credentials", "jobs_due", "erasures"} <= set(names)


def test_an_index_that_nobody_declared_is_not_bound(room: Room) -> None:
    class Thief:
        name = "memories"
        tables = ()

        def bind(self, reader: Reader, scope: Scope) -> Reader:
            return reader

    def attempt(ctx: ReadContext) -> None:
        with pytest.raises(PermissionError):
            ctx.index(Thief())

    room.within("spy.read", attempt)


def test_a_tenant_cannot_have_another_account_erased(room: Room) -> None:
    theirs = room.harness.scope_of(room.bob)

    def attempt(ctx: WriteContext) -> None:
        with pytest.raises(PermissionError):
            ctx.enqueue(
                "account.erase",
                {"tenant": theirs.tenant, "receipt": "00", "step": "key", "erased": {}},
            )

    room.within("spy.write", attempt)
    assert room.harness("auth.me", who=room.bob).status == 200


def test_a_tenant_revokes_and_opens_no_key_but_its_own(room: Room) -> None:
    minted = room.harness("auth.api_keys.create", {"name": "bob's"}, who=room.bob)
    with room.harness.shard.store.snapshot() as snapshot:
        slot = Scope.of_slot(room.harness.scope_of(room.bob).slot)
        ((digest, row),) = [
            (key[0], row)
            for key, row in snapshot.bind(tenants.CREDENTIALS, slot).scan()
            if row.key_id == minted.body["id"]
        ]

    def of_the_same_slot(of_slot: SlotWriteContext) -> None:
        # As an account beside bob's sees it.
        neighbour = Scope(slot.slot, room.harness.scope_of(room.bob).tenant + 1, b"k" * 32)
        ctx = of_slot.within(of_slot.principal, neighbour)
        assert list(tenants.own_credentials(ctx)) == []
        assert not tenants.revoke(ctx, digest)
        with pytest.raises(PermissionError):
            tenants.open_with(ctx, digest, row.key_id, row.scopes, None)

    room.of_slot(slot, of_the_same_slot)
    assert room.harness("auth.me", who=minted.body["key"]).status == 200


def test_a_slots_context_leads_to_accounts_of_its_slot_alone(room: Room) -> None:
    mine, theirs = room.harness.scope_of(room.ada), room.harness.scope_of(room.bob)
    assert mine.slot != theirs.slot

    def attempt(of_slot: SlotWriteContext) -> None:
        assert type(of_slot.within(of_slot.principal, mine)) is WriteContext
        for step in (
            lambda: of_slot.within(of_slot.principal, theirs),
            lambda: of_slot.answer_for(theirs),
        ):
            with pytest.raises(PermissionError):
                step()

    room.of_slot(Scope.of_slot(mine.slot), attempt)


def test_few_plugins_serve_more_than_one_tenant() -> None:
    wide = {
        plugin.name
        for plugin in serve_app.PLUGINS
        if any(one.internal or one.accounts for one in plugin.operations)
        or any(job.accounts for job in plugin.jobs)
    }
    assert wide == {"accounts", "billing", "operator", "usage"}


def test_a_tenants_operation_cannot_declare_that_it_acts_on_accounts() -> None:
    greedy = Read("spy.look", "GET", "/v1/spy", dict, "Look", None, accounts=True)
    with pytest.raises(RegistryError, match="tenant's credential"):
        Registry.build([Plugin("spy", operations=(greedy,))])
