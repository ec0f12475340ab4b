"""The client from a shell: add, search, ask, export.

    export MNEME_BASE_URL=http://127.0.0.1:8000 MNEME_API_KEY=mem_sk_…
    python -m mneme_client add "Ada eats no nuts." --user-id ada
    echo "A longer text." | python -m mneme_client add -
    python -m mneme_client search "What must Ada not eat?"
    python -m mneme_client ask "What must Ada not eat?" --json
    python -m mneme_client export account.jsonl

With --json the answer is printed as the service gave it. A failure is one sentence on standard
error, and status 1; Ctrl-C is status 130.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import IO, Any

from .client import API_KEY_VARIABLE, BASE_URL, BASE_URL_VARIABLE, Mneme
from .errors import ConnectionFailed, MnemeError
from .models import Record
from .retries import Retries
from .streams import Stream

MANIFEST = "manifest"
INTERRUPTED = 128 + signal.SIGINT
PATIENCE = Retries(attempts_max=3)  # somebody is watching


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "python -m mneme_client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--base-url", help=f"default: ${BASE_URL_VARIABLE}, else {BASE_URL}")
    shared.add_argument("--api-key", help=f"default: ${API_KEY_VARIABLE}")
    shared.add_argument("--json", action="store_true", help="print the answer as it came")
    scoped = argparse.ArgumentParser(add_help=False)
    scoped.add_argument("--user-id", help="whose memories these are")
    scoped.add_argument("--collection-id", help="in this collection")
    commands = made.add_subparsers(required=True, metavar="COMMAND")

    add = commands.add_parser(
        "add", parents=[shared, scoped], help="store a memory, and wait until searches find it"
    )
    add.add_argument("content", help="its text; - reads standard input")
    add.add_argument("--tag", action="append", dest="tags", help="a label; may be repeated")
    add.set_defaults(run=run_add)

    search = commands.add_parser(
        "search", parents=[shared, scoped], help="find memories, best first"
    )
    search.add_argument("query")
    search.add_argument("--limit", type=int, default=10)
    search.set_defaults(run=run_search)

    ask = commands.add_parser(
        "ask", parents=[shared, scoped], help="answer a question from memories, with quotations"
    )
    ask.add_argument("query")
    ask.set_defaults(run=run_ask)

    export = commands.add_parser(
        "export",
        parents=[shared],
        help="write everything the account holds, one JSON object a line",
    )
    export.add_argument("file", nargs="?", default="-", help="default: standard output")
    export.set_defaults(run=run_export)
    return made


def run_add(client: Mneme, options: argparse.Namespace) -> None:
    content = read_input() if options.content == "-" else options.content
    scope = {"user_id": options.user_id, "collection_id": options.collection_id}
    memory = client.memories.create(
        content=content, tags=options.tags, wait_for_index=True, **scope
    )
    told(memory, options, memory["memory_ids"][0])


def read_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ValueError("Standard input is no text in UTF-8.") from error


def run_search(client: Mneme, options: argparse.Namespace) -> None:
    found = client.search(
        options.query,
        limit=options.limit,
        user_id=options.user_id,
        collection_id=options.collection_id,
    )
    lines = [f"{hit['normalized_score']:.2f}  {hit['content']}" for hit in found["results"]]
    told(found, options, *(lines or ["nothing stored answers this"]))


def run_ask(client: Mneme, options: argparse.Namespace) -> None:
    answer = client.search.reason(
        options.query, user_id=options.user_id, collection_id=options.collection_id
    )
    quotes = [f"  {citation['memory_id']}: {citation['quote']}" for citation in answer["citations"]]
    told(answer, options, answer["answer"] or "nothing stored answers this", *quotes)


def run_export(client: Mneme, options: argparse.Namespace) -> None:
    with client.account.export() as records:
        if options.file == "-":
            write_records(records, sys.stdout)
            return
        with open(options.file, "x", encoding="utf-8") as file:
            count = write_records(records, file)
    print(f"{count} records in {options.file}", file=sys.stderr)


def write_records(records: Stream[Record], file: IO[str]) -> int:
    """-> how many records. Raises ConnectionFailed where the last one, the manifest, is missing."""
    count, kind = 0, ""
    for record in records:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        count, kind = count + 1, record["kind"]
    if kind != MANIFEST:
        raise ConnectionFailed("The export ended before it was complete.")
    return count


def told(answer: Any, options: argparse.Namespace, *lines: str) -> None:
    print(json.dumps(answer, ensure_ascii=False) if options.json else "\n".join(lines))


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        with Mneme(base_url=options.base_url, api_key=options.api_key, retries=PATIENCE) as client:
            options.run(client, options)
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except KeyError as error:
        print(f"The answer lacks {error}: is it this service's address?", file=sys.stderr)
        return 1
    except (MnemeError, OSError, TypeError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
