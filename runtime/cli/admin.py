"""`mneme admin`: what the operator does to accounts and their bills, on a running service or on the
files of a stopped one.

`COMMANDS` is the table; runtime/cli/arguments.py makes the command line from it. A command that
acts on accounts opens an `operator_client`, which takes internal requests either way: over HTTP
with the operator token when a service holds the data directory, else through the same gateway and
shards, opened in this process for as long as the command takes. So a command is written once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from runtime.cli.chosen_settings import service_settings
from runtime.cli.client import CallFailed, Client, NobodyAnswers, content_of, local_base_url
from runtime.cli.columns import columns
from runtime.installation import DirectoryInUse, Layout, Secrets, held
from runtime.limits import CALL_SECONDS_MAX, TIERS
from runtime.placement import PlacementTable
from runtime.settings import Settings

if TYPE_CHECKING:
    import httpx

OK, INCONSISTENT = 0, 1
_RE_EMBED = "/v1/internal/re-embed"
_POLL_SECONDS = 0.5
_BASE = "https://files.mneme"  # never resolved: requests to it are answered in this process


@dataclass(frozen=True, slots=True)
class Command:
    """One `mneme admin` command. run: -> exit status; failures are raised, see
    runtime/cli/ending.py.

    of_service  whether it is given the sections of the plugins too
    """

    name: str
    summary: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Settings], int]
    of_service: bool = False


class Caller(Protocol):
    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]: ...


# --- where requests go ----------------------------------------------------------------------------


@contextlib.contextmanager
def operator_client(parsed: Namespace, settings: Settings) -> Iterator[Caller]:
    """Open a client for internal requests about this data directory. Raises LayoutError,
    SecretsError, StoreError, CallFailed.
    """
    base_url: str | None = parsed.base_url
    user: DirectoryInUse | None = None
    if settings.cluster.name is not None:  # its shards are on other machines, too
        with Client(
            base_url or local_base_url(settings), Secrets.of(settings).operator_token
        ) as client:
            yield client
        return
    Layout.load(
        settings.data_dir
    )  # a directory without a service's data is named as such, and not filled
    token = Secrets.of(settings).operator_token
    with contextlib.ExitStack() as stack:
        if base_url is None:
            try:
                stack.enter_context(held(settings.data_dir))
            except DirectoryInUse as used:
                base_url, user = local_base_url(settings), used
        try:
            yield stack.enter_context(
                _files(service_settings(parsed), token)
                if base_url is None
                else Client(base_url, token)
            )
        except NobodyAnswers as failed:
            if user is None:
                raise
            raise CallFailed(
                f"{user} It does not answer at {base_url}: name its address with --host and "
                "--port, or --base-url."
            ) from failed


@contextlib.contextmanager
def _files(settings: Settings, token: str) -> Iterator[Caller]:
    """The service itself, in this process, for the length of the block. The caller holds the data
    directory.
    """
    # With the shards and all they stand on, which a command on a running service needs none of.
    import httpx

    from runtime import cluster

    with asyncio.Runner() as runner:
        opened: list[cluster.ShardLike] = []
        shards = cluster.LocalShards(opened, table=PlacementTable(settings.data_dir))
        try:
            for number in range(len(PlacementTable(settings.data_dir).load().shards)):
                opening = cluster.open_shard(settings, number, "serve_app:open_shard")
                opened.append(runner.run(opening))
            application = cluster.resolve("serve_app:build_local")(settings, shards)
            client = httpx.AsyncClient(
                transport=httpx.ASGITransport(application),
                base_url=_BASE,
                headers={"Authorization": f"Bearer {token}"},
                timeout=CALL_SECONDS_MAX,
            )
            yield _InProcess(runner, client)
            runner.run(client.aclose())
            runner.run(shards.drain())
        finally:
            runner.run(shards.close())


class _InProcess:
    def __init__(self, runner: asyncio.Runner, client: httpx.AsyncClient):
        self._runner, self._client = runner, client

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As Client.call."""
        return content_of(
            method, path, self._runner.run(self._client.request(method, path, json=body)), _BASE
        )


def accounts(caller: Caller, settings: Settings, email: str | None) -> Iterator[dict[str, Any]]:
    """The account with this address, or all of the installation, page by page."""
    if email is not None:
        yield {"email": email}
        return
    for page in _pages(caller, settings, "/v1/internal/accounts"):
        yield from page["accounts"]


def _pages(caller: Caller, settings: Settings, path: str) -> Iterator[dict[str, Any]]:
    """The pages of a list that each shard has of its own, shard by shard."""
    for slot in _slot_of_each_shard(settings):
        page: dict[str, Any] = {"next": None}
        while True:
            after = {} if page["next"] is None else {"after": page["next"]}
            page = caller.call("POST", path, {"slot": slot, **after})
            yield page
            if page["next"] is None:
                break


def _slot_of_each_shard(settings: Settings) -> Iterator[int]:
    """A slot of each shard that has any, by which it is asked."""
    placement = PlacementTable.of(settings).load()
    for slots in filter(None, map(placement.slots_of, range(len(placement.shards)))):
        yield slots[0]


# --- commands -------------------------------------------------------------------------------------

_LOAD_HEADINGS = ("CORES", "REQ/S", "READ", "WRITE", "OTHER", "WAITED", "MEMORY", "SLOT", "ACCOUNT")
_LOAD_TIMES = ("read_ms", "write_ms", "other_ms", "waited_ms")


def _money(invoice: Mapping[str, Any]) -> str:
    return (
        f"{invoice['number']}  {invoice['total_cents'] / 100:,.2f} {invoice['currency'].upper()}  "
        f"{invoice['status']}"
    )


def _of_account(parser: ArgumentParser) -> None:
    parser.add_argument("--email", required=True, help="the account's e-mail address")


def _of_some_accounts(parser: ArgumentParser) -> None:
    parser.add_argument("--email", help="the account's e-mail address (default: all accounts)")


def _of_invoice(parser: ArgumentParser) -> None:
    _of_account(parser)
    parser.add_argument("--invoice", required=True, help="the invoice's number or id")


def _set_tier_arguments(parser: ArgumentParser) -> None:
    _of_account(parser)
    parser.add_argument("--tier", required=True, choices=tuple(TIERS), help="the tier from now on")
    parser.add_argument(
        "--price-cents",
        type=int,
        metavar="CENTS",
        help="agreed price a month (default: the tier's own)",
    )


def _mark_paid_arguments(parser: ArgumentParser) -> None:
    _of_invoice(parser)
    parser.add_argument("--reference", default="", help="what the payment is known by")


def _credit_note_arguments(parser: ArgumentParser) -> None:
    _of_invoice(parser)
    parser.add_argument("--reason", required=True, help="why; it stands on the note")
    parser.add_argument(
        "--amount-cents",
        type=int,
        metavar="CENTS",
        help="how much to take back (default: all that is left)",
    )


def list_accounts(parsed: Namespace, settings: Settings) -> int:
    with operator_client(parsed, settings) as caller:
        for account in accounts(caller, settings, None):
            print(f"{account['email']}  {account['tier']}  since {account['created_at'][:10]}")
    return OK


def _load_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--top", type=int, default=20, metavar="COUNT", help="how many accounts (default: 20)"
    )


def show_load(parsed: Namespace, settings: Settings) -> int:
    """The accounts that take most of a running service, over all its shards."""
    found: list[dict[str, Any]] = []
    with operator_client(parsed, settings) as caller:
        for slot in _slot_of_each_shard(settings):
            asked = {"slot": slot, "count": parsed.top}
            page = caller.call("POST", "/v1/internal/accounts/busiest", asked)
            found += page["accounts"]
    found.sort(key=lambda account: -account["cores"])
    rows = [_LOAD_HEADINGS, *(_load_row(account) for account in found[: parsed.top])]
    print(*columns(rows), sep="\n")
    return OK


def _load_row(account: Mapping[str, Any]) -> tuple[str, ...]:
    took = (f"{account[name] / 1000:.2f} s" for name in _LOAD_TIMES)
    rate = account["requests"] / max(account["seconds"], 1.0)
    memory = f"{account['resident_bytes'] / 1e6:.1f} MB"
    return (
        f"{account['cores']:.3f}",
        f"{rate:.1f}",
        *took,
        memory,
        str(account["slot"]),
        account["email"],
    )


def _invite_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--email", help="the one address that may register (default: any)")
    parser.add_argument(
        "--days", type=int, default=7, metavar="DAYS", help="how long it is good for (default: 7)"
    )


def invite(parsed: Namespace, settings: Settings) -> int:
    named = {} if parsed.email is None else {"email": parsed.email}
    body = {"expires_in_seconds": parsed.days * 24 * 3600, **named}
    with operator_client(parsed, settings) as caller:
        print(caller.call("POST", "/v1/auth/invitations", body)["invitation"])
    return OK


def set_tier(parsed: Namespace, settings: Settings) -> int:
    price = {} if parsed.price_cents is None else {"price_cents": parsed.price_cents}
    with operator_client(parsed, settings) as caller:
        answer = caller.call(
            "POST",
            "/v1/internal/billing/set-tier",
            {"email": parsed.email, "tier": parsed.tier, **price},
        )
    print(f"{parsed.email} has the tier {answer['tier']['name']}.")
    return OK


def clear_second_factor(parsed: Namespace, settings: Settings) -> int:
    with operator_client(parsed, settings) as caller:
        answer = caller.call("POST", "/v1/internal/totp/clear", {"email": parsed.email})
    if answer["cleared"]:
        ended = answer["sessions_ended"]
        print(f"{parsed.email} logs in by password alone; {ended} sessions were ended.")
    else:
        print(f"{parsed.email} has no second factor; nothing was changed.")
    return OK


def close_period(parsed: Namespace, settings: Settings) -> int:
    """Close what is over; a month that was closed before is left as it is."""
    issued = 0
    with operator_client(parsed, settings) as caller:
        for account in accounts(caller, settings, parsed.email):
            for invoice in caller.call(
                "POST", "/v1/internal/billing/close", {"email": account["email"]}
            )["invoices"]:
                issued += 1
                print(f"{account['email']}  {_money(invoice)}")
    print(f"{issued} invoices were issued.")
    return OK


def audit_usage(parsed: Namespace, settings: Settings) -> int:
    """Compare events, counters, invoices and ledger of each account; the status says whether all
    agree.
    """
    checked, wrong = 0, 0
    with operator_client(parsed, settings) as caller:
        for account in accounts(caller, settings, parsed.email):
            usage = caller.call("POST", "/v1/internal/usage/audit", {"email": account["email"]})
            books = caller.call("POST", "/v1/internal/billing/audit", {"email": account["email"]})
            checked += 1
            wrong += not (usage["consistent"] and books["consistent"])
            for period in usage["periods"]:
                figures = " ".join(
                    f"{name}={period[name]}"
                    for name in ("events", "counter", "by_operation", "by_key", "by_time")
                )
                print(
                    f"{account['email']}  {period['period_start'][:7]}  {figures}  "
                    f"{_verdict(period)}"
                )
            figures = " ".join(
                f"{name}={value}"
                for name, value in books.items()
                if isinstance(value, int) and name != "consistent"
            )
            print(f"{account['email']}  ledger   {figures}  {_verdict(books)}")
    print(
        f"{wrong} of {checked} accounts do not add up."
        if wrong
        else f"All {checked} accounts add up."
    )
    return INCONSISTENT if wrong else OK


def financial_records(parsed: Namespace, settings: Settings) -> int:
    """Print the financial records of erased accounts, a JSON object a line."""
    with operator_client(parsed, settings) as caller:
        for page in _pages(caller, settings, "/v1/internal/billing/retained"):
            for record in page["records"]:
                print(json.dumps(record, ensure_ascii=False))
    return OK


def _verdict(checked: Mapping[str, Any]) -> str:
    return "ok" if checked["consistent"] else "DIFFERS"


def mark_paid(parsed: Namespace, settings: Settings) -> int:
    body = {"email": parsed.email, "invoice": parsed.invoice, "reference": parsed.reference}
    with operator_client(parsed, settings) as caller:
        print(_money(caller.call("POST", "/v1/internal/billing/mark-paid", body)))
    return OK


def credit_note(parsed: Namespace, settings: Settings) -> int:
    amount = {} if parsed.amount_cents is None else {"amount_cents": parsed.amount_cents}
    body = {"email": parsed.email, "invoice": parsed.invoice, "reason": parsed.reason, **amount}
    with operator_client(parsed, settings) as caller:
        print(_money(caller.call("POST", "/v1/internal/billing/credit-note", body)))
    return OK


def _re_embed_arguments(parser: ArgumentParser) -> None:
    _of_some_accounts(parser)
    parser.add_argument(
        "--no-wait", action="store_true", help="begin, and do not wait until it is done"
    )


def re_embed(parsed: Namespace, settings: Settings) -> int:
    """Begin, or go on with, the embedding of every account's memories by the current model; each
    change of the figures is a line.
    """
    failed = 0
    with operator_client(parsed, settings) as caller:
        begun = [
            (account["email"], caller.call("POST", _RE_EMBED, {"email": account["email"]}))
            for account in accounts(caller, settings, parsed.email)
        ]
        for email, state in begun:
            failed += _wait_for(caller, email, state) if not parsed.no_wait else False
    print(f"{len(begun) - failed} accounts {'were begun' if parsed.no_wait else 'are done'}.")
    return INCONSISTENT if failed else OK


def _wait_for(caller: Caller, email: str, state: Mapping[str, Any]) -> bool:
    """Print how it goes until it has ended; -> whether it failed."""
    body = {"email": email, "job_id": state["job_id"]}
    shown = None
    while True:
        space = state["space"] or "no space, since there is nothing to search"
        line = f"{email}  {state['embedded']} memories embedded, searched in {space}"
        if line != shown:
            print(line, flush=True)
            shown = line
        if state["status"] in ("switched", "failed"):
            if state["status"] == "failed":
                print(f"{email}  failed: {state['error']}")
            return state["status"] == "failed"
        time.sleep(_POLL_SECONDS)
        state = caller.call("POST", _RE_EMBED, body)


COMMANDS: tuple[Command, ...] = (
    Command("accounts", "list all accounts and their tiers", lambda parser: None, list_accounts),
    Command("load", "show the accounts that take most at the moment", _load_arguments, show_load),
    Command("invite", "invite somebody to register once", _invite_arguments, invite),
    Command(
        "clear-second-factor",
        "turn off the second factor of an account whose holder has lost it, and end its sessions",
        _of_account,
        clear_second_factor,
    ),
    Command("set-tier", "change an account's tier at once", _set_tier_arguments, set_tier),
    Command(
        "close-period",
        "close the months that are over and issue their invoices",
        _of_some_accounts,
        close_period,
    ),
    Command(
        "audit-usage",
        "check usage, invoices and ledger against each other",
        _of_some_accounts,
        audit_usage,
    ),
    Command(
        "financial-records",
        "print the financial records of erased accounts, a JSON object a line",
        lambda parser: None,
        financial_records,
    ),
    Command(
        "re-embed",
        "embed the memories of accounts by the current model, after previous_embedder was set",
        _re_embed_arguments,
        re_embed,
    ),
    Command("mark-paid", "record that an invoice was paid", _mark_paid_arguments, mark_paid),
    Command(
        "credit-note",
        "take back an invoice, as a whole or in part",
        _credit_note_arguments,
        credit_note,
    ),
)
