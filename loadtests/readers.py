"""What reader processes give beside one shard: python loadtests/readers.py [--readers 0 1 2 4 8]
[--clients 1 8 32] [--memories 2000] [--seconds 4]

One account of one shard on engine ray is searched over so many connections, once with each number
of readers; no question is asked twice, and nothing is left for later when the first one comes.
Printed are searches a second, how long they took, and the processor time of all processes of the
service for each; the first line of each service is not printed, since readers begin in it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests import compare, conversations
from loadtests.load import Requests, Service, settle
from loadtests.shards import processor_seconds

BATCH, IN_FLIGHT, RESULTS = 100, 2, 10
WARM_CONNECTIONS, WARM_SECONDS, SETTLED_SECONDS_MAX = 8, 4, 600.0


def measure(readers: int, asked: argparse.Namespace) -> None:
    settings = ["shards.count=1", f"shards.readers={readers}", *asked.set]
    with (
        tempfile.TemporaryDirectory(prefix="mneme-readers-") as directory,
        Service.started("ray", Path(directory) / "data", settings) as service,
    ):
        service.ingest(conversations.memories(asked.memories), BATCH, IN_FLIGHT)
        settle(service.base_url, SETTLED_SECONDS_MAX)
        count = 2_000 * asked.seconds * len(asked.clients)
        with Requests(
            service.base_url, service.headers, compare.searches(count, RESULTS), 200
        ) as requests:
            requests.measure(WARM_CONNECTIONS, WARM_SECONDS)
            for clients in asked.clients:
                before = processor_seconds()
                found = requests.measure(clients, asked.seconds)
                spent = processor_seconds() - before
                print(
                    f"{readers} readers   c={clients:<3} {found.per_second:7.1f}/s   "
                    f"p50 {found.p50_ms:7.2f} ms   p99 {found.p99_ms:7.2f} ms   "
                    f"{1000 * spent / (found.per_second * asked.seconds):6.2f} ms of processor "
                    "time each",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--readers", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--memories", type=int, default=2_000, help="of the account (%(default)s)")
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    for readers in asked.readers:
        measure(readers, asked)


if __name__ == "__main__":
    main()
