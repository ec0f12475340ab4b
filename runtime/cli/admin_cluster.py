"""`mneme admin cluster`, `move-slot`, `rebalance`, `drain` and `undrain`: where slots are, and
moving them between shards.

Like the other commands they work on a running service and on the files of a stopped one. An order
waits until its moves are made, unless told not to: the supervisor goes on by itself, but only while
a service runs.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from runtime.cli.admin import INCONSISTENT, OK, Caller, Command, operator_client
from runtime.cli.columns import columns
from runtime.settings import Settings

_PATH = "/v1/internal/cluster"
_POLL_SECONDS = 0.2
_HEADINGS = ("SHARD", "NODE", "STATE", "SLOTS", "BYTES", "COMMIT", "JOBS", "BEHIND")


def show(parsed: Namespace, settings: Settings) -> int:
    with operator_client(parsed, settings) as caller:
        report = caller.call("GET", _PATH)
    print(f"Placement {report['version']}")
    print(*columns([_HEADINGS, *(_row(shard) for shard in report["shards"])]), sep="\n")
    for move in report["moves"]:
        print(
            f"{move['id']}  {move['slots']} slots  shard {move['source']} -> {move['target']}  "
            f"{move['state']}"
        )
    for node in report["gone"]:
        print(f"node {node['node']} is gone since {node['seconds']:.0f} s")
    for node in report["unfit"]:
        print(f"node {node['node']} gets no shard: {node['problem']}")
    for came in report["restorations"]:
        behind = (
            f", {came['behind_seconds_max']} s behind at most"
            if came["behind_seconds_max"] is not None
            else ", nobody knows how far behind"
            if came["done"]
            else ""
        )
        print(
            f"shard {came['shard']}  node {came['source']} -> {came['target']}  {came['seconds']} "
            f"s{behind}"
        )
    for failure in report["failures"]:
        print(f"{failure['id']}  came to nothing: {failure['reason']}")
    return OK if all(shard["open"] for shard in report["shards"]) else INCONSISTENT


def _row(shard: Mapping[str, Any]) -> tuple[str, ...]:
    state = "draining" if shard["draining"] else "open"
    figures = (shard[name] for name in ("slots", "bytes", "sequence", "jobs_waiting"))
    behind = "-" if shard["log_behind_seconds"] is None else f"{shard['log_behind_seconds']:.1f} s"
    return (
        str(shard["shard"]),
        shard["node"] or "-",
        state if shard["open"] else "SILENT",
        *map(str, figures),
        behind,
    )


def move_slot(parsed: Namespace, settings: Settings) -> int:
    return _order(parsed, settings, "/moves", {"slots": parsed.slots, "shard": parsed.to})


def rebalance(parsed: Namespace, settings: Settings) -> int:
    return _order(parsed, settings, "/rebalance", {})


def drain(parsed: Namespace, settings: Settings) -> int:
    return _order(parsed, settings, "/drain", _named(parsed))


def undrain(parsed: Namespace, settings: Settings) -> int:
    with operator_client(parsed, settings) as caller:
        caller.call("POST", _PATH + "/undrain", _named(parsed))
    print("It takes slots again; mneme admin rebalance gives it some.")
    return OK


def _named(parsed: Namespace) -> Mapping[str, Any]:
    return {"node": parsed.node} if parsed.shard is None else {"shard": parsed.shard}


def _order(parsed: Namespace, settings: Settings, path: str, body: Mapping[str, Any]) -> int:
    with operator_client(parsed, settings) as caller:
        report = caller.call("POST", _PATH + path, body)
        planned = {move["id"] for move in report["moves"]}
        print(
            f"{len(planned)} moves of {sum(move['slots'] for move in report['moves'])} slots are "
            "planned."
        )
        return OK if parsed.no_wait else _await_end(caller, planned)


def _await_end(caller: Caller, planned: set[str]) -> int:
    """Watch until none of the moves is left; 1 when one came to nothing for good."""
    while True:
        report = caller.call("GET", _PATH)
        left = [move for move in report["moves"] if move["id"] in planned]
        if not left:
            break
        time.sleep(_POLL_SECONDS)
    failed = [
        failure for failure in report["failures"] if failure["id"] in planned and failure["final"]
    ]
    for failure in failed:
        print(f"{failure['id']} came to nothing: {failure['reason']}", file=sys.stderr)
    print(f"{len(planned) - len(failed)} moves were made.")
    return INCONSISTENT if failed else OK


def _no_arguments(parser: ArgumentParser) -> None:
    """The cluster needs none."""


def _patience(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="end when the moves are planned; a running service makes them",
    )


def _slots(parser: ArgumentParser) -> None:
    parser.add_argument(
        "slots", type=int, nargs="+", metavar="SLOT", help="a slot's number, 0 to 4095"
    )
    parser.add_argument(
        "--to", type=int, required=True, metavar="SHARD", help="the shard that is to hold them"
    )
    _patience(parser)


def _node(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "node", nargs="?", metavar="NODE", help="label of a node, for all its shards"
    )
    which.add_argument("--shard", type=int, metavar="SHARD", help="one shard instead")


def _node_and_patience(parser: ArgumentParser) -> None:
    _node(parser)
    _patience(parser)


COMMANDS: tuple[Command, ...] = (
    Command("cluster", "show nodes, shards, their slots, and moves under way", _no_arguments, show),
    Command("move-slot", "move slots to another shard", _slots, move_slot),
    Command(
        "rebalance", "even out bytes, requests and slots between the shards", _patience, rebalance
    ),
    Command("drain", "empty a node or a shard", _node_and_patience, drain),
    Command("undrain", "let a drained node or shard have slots again", _node, undrain),
)
