"""Whether an account can tell from the service's answers what another one has asked or stored.

    python loadtests/cache_timing.py [--probes 500] [--seed 1] [--engine local|ray]

One account, the victim, asks or stores some texts; another one, the attacker, then sends those and
as many that nobody has sent, in a random order, each once. Of every answer are noted how long it
took on the wire, what it says itself of that (`processing_time_ms`), and how long it is.

    asked    the attacker searches for what the victim has searched for
    stored   the attacker stores what the victim has stored
    sought   the attacker searches for what the victim has stored
    own      the victim searches for what it has searched for: what is remembered for an account
             is to be seen, else this measure sees nothing

Printed is for each the area under the curve (AUC) of telling one kind of text from the other by
that figure alone, in whichever direction is better: 0.5 tells nothing, 1 everything. Beside it the
interval that holds 95 % of AUCs of the same probes drawn anew (bootstrap). The service is `mneme
serve` in a process of its own, with a data directory of its own, and both accounts share a shard.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

START = "import sys; from runtime.cli import main; sys.exit(main())"
ONE_SHARD = {"MNEME_SHARDS__COUNT": "1"}
WARM_UP_PROBES = 100
DRAWS = 1_000
STOP_SECONDS_MAX = 60
WHO = ("Margaret", "Ismail", "Chiara", "Olaf", "Priya", "Tomás", "Wen", "Zofia", "Amara", "Lars")
DID = (
    "sold",
    "lost",
    "painted",
    "moored",
    "repaired",
    "borrowed",
    "hid",
    "insured",
    "drew",
)
WHAT = ("boat", "violin", "orchard", "bicycle", "passport", "kiln", "telescope", "tent", "cellar")
WHERE = (
    "Antwerp",
    "Oslo",
    "Lagos",
    "Quito",
    "Kyoto",
    "Riga",
    "Cardiff",
    "Split",
    "Turin",
)


class Account:
    """One of the service's accounts, with a connection of its own."""

    def __init__(self, address: str, name: str):
        self._connection = http.client.HTTPConnection(address)
        self._headers = {"Content-Type": "application/json"}
        given = {"email": f"{name}@example.com", "password": secrets.token_hex(), "full_name": name}
        token = json.loads(self._ask("/v1/auth/register", given)[1])["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"

    def connect(self) -> None:
        """Anew: the service may have closed it while others were asked."""
        self._connection.close()
        self._connection.connect()

    def search(self, text: str) -> dict[str, float]:
        return self._noted("/v1/search", {"query": text})

    def store(self, text: str) -> dict[str, float]:
        return self._noted("/v1/memories/raw", {"content": text})

    def _noted(self, path: str, body: dict[str, Any]) -> dict[str, float]:
        """Milliseconds on the wire, those that the answer tells of where it does, its bytes."""
        took_ms, said = self._ask(path, body)
        told = json.loads(said).get("processing_time_ms")
        own = {} if told is None else {"told_ms": told}
        return {"wire_ms": took_ms, **own, "answer_bytes": len(said)}

    def _ask(self, path: str, body: dict[str, Any]) -> tuple[float, bytes]:
        try:
            return self._asked_once(path, body)
        except (ConnectionError, http.client.HTTPException):  # it was closed meanwhile
            self.connect()
            return self._asked_once(path, body)

    def _asked_once(self, path: str, body: dict[str, Any]) -> tuple[float, bytes]:
        begun = time.perf_counter()
        self._connection.request("POST", path, json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        said = answer.read()
        took_ms = (time.perf_counter() - begun) * 1000
        if answer.status not in (200, 201):
            raise SystemExit(f"{path} was answered {answer.status}: {said[:200]!r}.")
        return took_ms, said


def texts(chance: random.Random, count: int) -> list[str]:
    """Sentences that differ, all alike in kind and about as long."""
    found: dict[str, None] = {}
    while len(found) < count:
        who, did, what, where = (chance.choice(words) for words in (WHO, DID, WHAT, WHERE))
        found[f"{who} {did} the {what} near {where} in lot {chance.randrange(10**5, 10**6)}"] = None
    return list(found)


def auc(known: np.ndarray, unknown: np.ndarray) -> float:
    """How often a known text's figure is the lower one, ties by halves."""
    ranks = np.sort(known)
    below, up_to = (np.searchsorted(ranks, unknown, side) for side in ("left", "right"))
    return float((below + up_to).mean() / 2 / len(known))


def judged(known: list[float], unknown: list[float], draws: np.random.Generator) -> dict[str, Any]:
    """The AUC in the better direction, and the bootstrap's interval of it."""
    one, other = np.array(known), np.array(unknown)
    found = auc(one, other)
    again = ((draws.choice(each, len(each)) for each in (one, other)) for _ in range(DRAWS))
    drawn = [auc(*pair) for pair in again]
    if found < 0.5:
        found, drawn = 1 - found, [1 - each for each in drawn]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {
        "auc": round(found, 3),
        "of 95 %": [round(float(low), 3), round(float(high), 3)],
        "median known": round(float(np.median(one)), 3),
        "median unknown": round(float(np.median(other)), 3),
    }


def measured(address: str, probes: int, seed: int) -> dict[str, Any]:
    chance, draws = random.Random(seed), np.random.default_rng(seed)
    victim, attacker = Account(address, "victim"), Account(address, "attacker")
    kinds = {
        "asked": (victim.search, attacker.search),
        "stored": (victim.store, attacker.store),
        "sought": (victim.store, attacker.search),
        "own": (victim.search, victim.search),
    }
    every = texts(chance, len(kinds) * (2 * probes + WARM_UP_PROBES))
    figures: dict[str, Any] = {}
    for kind, (known_by, probe) in kinds.items():
        known, unknown = ([every.pop() for _ in range(probes)] for _ in range(2))
        victim.connect()
        for text in known:
            known_by(text)
        attacker.connect()
        for _ in range(WARM_UP_PROBES):
            probe(every.pop())
        noted = {text: probe(text) for text in chance.sample([*known, *unknown], len(known) * 2)}
        figures[kind] = {
            name: judged(
                [noted[text][name] for text in known],
                [noted[text][name] for text in unknown],
                draws,
            )
            for name in noted[known[0]]
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--probes", type=int, default=500, help="texts of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mneme-timing-") as directory:
        service = subprocess.Popen(
            [
                *(sys.executable, "-c", START, "serve", "--engine", asked.engine, "--port", "0"),
                *("--data-dir", directory, "--config", str(ROOT / "configs/local.yaml")),
            ],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT}:{ROOT}/runtime/author",
                "MNEME_SHARDS__COUNT": "1",
            },
        )
        try:
            assert service.stdout is not None
            address = service.stdout.readline().rpartition("//")[2].strip()
            print(json.dumps(measured(address, asked.probes, asked.seed), indent=1))
        finally:
            service.terminate()
            service.wait(STOP_SECONDS_MAX)


if __name__ == "__main__":
    main()
