"""The command line: which commands there are, and what each takes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from runtime.cli import (
    admin,
    admin_cluster,
    admin_storage,
    export_memories,
    log_search,
    moving_in,
    plugins,
)
from runtime.cli import commands as run

Commands = argparse._SubParsersAction

SECRET_VARIABLE = "WEBHOOK_SIGNING_SECRET"


def parser() -> argparse.ArgumentParser:
    """A parser whose result has `run`, the command's function."""
    top = argparse.ArgumentParser(
        prog="mneme", description="A self-hosted memory backend for AI applications."
    )
    top.add_argument("--version", action="version", version=f"mneme {metadata.version('mneme')}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        _add_serve,
        _add_demo,
        _add_import,
        _add_export,
        _add_doctor,
        _add_upgrade_check,
        _add_keys,
        _add_webhooks,
        _add_admin,
        _add_ingest,
        _add_mcp,
        _add_models,
        _add_bench,
        _add_status,
        _add_logs,
        _add_monitoring,
        _add_completion,
        _add_plugin,
    ):
        add(commands)
    return top


def _add_serve(commands: Commands) -> None:
    start = _command(
        commands, "serve", run.serve, "run the service in the foreground until SIGINT or SIGTERM"
    )
    start.add_argument(
        "--engine",
        choices=("ray", "local"),
        help="ray: Ray Serve (default); local: everything in one process",
    )
    start.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="the Ray cluster to join, or auto (default: a Ray of its own)",
    )
    start.add_argument(
        "--ray-dashboard",
        action="store_const",
        const="true",
        help="start Ray's own dashboard, on this machine's loopback",
    )
    start.add_argument(
        "--demo-account",
        action="store_true",
        help="make a local demo account once, and print its sign-in and API key",
    )
    start.add_argument(
        "--fetch-model",
        action="store_true",
        help="install the embedding model's weights first, if they are missing, and verify them",
    )


def _add_demo(commands: Commands) -> None:
    show = _command(
        commands,
        "demo",
        run.run_demo,
        "store a short conversation in the running service and ask it three questions",
    )
    _add_base_url(show)
    show.add_argument(
        "--api-key",
        metavar="KEY",
        help="an existing account's key; a throw-away account is registered otherwise",
    )
    show.add_argument(
        "--keep", action="store_true", help="leave the demonstration's memories where they are"
    )


def _add_import(commands: Commands) -> None:
    bring = _command(
        commands,
        "import",
        run.import_file,
        "store what another memory system kept: a file of it, or its folder",
    )
    bring.add_argument(
        "file",
        type=Path,
        metavar="PATH",
        help="JSON, JSON Lines, CSV, Parquet, an SQLite file, a dump of PostgreSQL, an archive, or "
        "a store's folder",
    )
    bring.add_argument(
        "--format",
        choices=moving_in.FORMS,
        help="what wrote it (default: told by its shape)",
    )
    bring.add_argument(
        "--dry-run",
        action="store_true",
        help="say what maps to what and what has no place, and store nothing; needs no service",
    )
    bring.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FIELD=THEIRS",
        help="a field of a memory and the column or key that becomes it, such as "
        "occurred_at=when; without FIELD theirs is left out; repeatable",
    )
    bring.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="of a store with several collections, or of an archive's sections, one to read "
        "(default: all); repeatable",
    )
    bring.add_argument(
        "--api-key", metavar="KEY", help=f"the account's key (default: ${run.KEY_VARIABLE})"
    )
    bring.add_argument(
        "--collection-id",
        type=_id,
        metavar="ID",
        help="the collection to store into (default: the default one)",
    )
    bring.add_argument(
        "--user-id", type=_id, metavar="ID", help="the end user of memories that name none"
    )
    bring.add_argument(
        "--infer",
        action="store_true",
        help="store what can be learned from each text instead of the text",
    )
    _add_base_url(bring)


def _add_export(commands: Commands) -> None:
    take = _command(
        commands,
        "export",
        run.export_file,
        "write an account's memories to a file of JSON Lines or Parquet",
    )
    take.add_argument(
        "file", metavar="FILE", help="where to, or - for standard output; one memory a line or row"
    )
    take.add_argument(
        "--format",
        choices=export_memories.FORMATS,
        help="of the file (default: parquet where its name ends in .parquet, else jsonl)",
    )
    take.add_argument(
        "--api-key", metavar="KEY", help=f"the account's key (default: ${run.KEY_VARIABLE})"
    )
    take.add_argument(
        "--collection-id", type=_id, metavar="ID", help="only the memories of this collection"
    )
    take.add_argument(
        "--user-id", type=_id, metavar="ID", help="only the memories of this end user"
    )
    take.add_argument(
        "--include-superseded",
        action="store_true",
        help="also what later memories have taken the place of",
    )
    _add_base_url(take)


def _add_doctor(commands: Commands) -> None:
    check = _command(commands, "doctor", run.examine, "check the installation and say what to mend")
    check.add_argument("--engine", choices=("ray", "local"), help="the engine to check for")


def _add_upgrade_check(commands: Commands) -> None:
    _command(
        commands,
        "upgrade-check",
        run.check_upgrade,
        "say what the next start of this release would do to the data, and change nothing",
    )


def _add_keys(commands: Commands) -> None:
    keys = commands.add_parser("keys", help="API keys, for the operator").add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    create = _command(keys, "create", run.create_key, "mint an API key of an account")
    create.add_argument("--email", required=True, help="the account's e-mail address")
    create.add_argument("--name", default="operator", help="what the key is for (%(default)s)")
    create.add_argument(
        "--scopes", default="read,write", help="comma-separated: read, write, admin (%(default)s)"
    )
    _add_base_url(create, for_operator=True)


def _add_webhooks(commands: Commands) -> None:
    hooks = commands.add_parser("webhooks", help="events, for developers").add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    receive = hooks.add_parser(
        "listen",
        help="receive webhook events on this machine, check their signatures and print them",
    )
    receive.set_defaults(run=run.listen_for_events)
    receive.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    receive.add_argument(
        "--port", type=int, default=9000, help="port to listen on; 0 takes a free one (%(default)s)"
    )
    receive.add_argument(
        "--secret",
        default=os.environ.get(SECRET_VARIABLE),
        help=f"the webhook's signing secret (${SECRET_VARIABLE})",
    )


def _add_admin(commands: Commands) -> None:
    operator = commands.add_parser("admin", help="what the operator does").add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    for command in (*admin.COMMANDS, *admin_storage.COMMANDS, *admin_cluster.COMMANDS):
        act = _command(operator, command.name, run.administer, command.summary)
        command.arguments(act)
        _add_base_url(act, for_operator=True)
        act.set_defaults(admin=command)


def _add_ingest(commands: Commands) -> None:
    files = _command(
        commands,
        "ingest",
        run.ingest,
        "upload files and folders of files into the running service",
    )
    files.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="a file, or a folder with all the files below it",
    )
    files.add_argument(
        "--api-key",
        metavar="KEY",
        help=f"the account's key (default: ${run.KEY_VARIABLE}, else the local demo account's)",
    )
    files.add_argument(
        "--collection",
        type=_id,
        metavar="ID",
        help="the collection they belong to (default: the default one)",
    )
    files.add_argument(
        "--tags", default="", help="labels for all of them, with commas between them"
    )
    files.add_argument(
        "--at-once",
        type=_between(1, 16),
        default=4,
        metavar="N",
        help="uploads side by side, 1 to 16 (%(default)s)",
    )
    files.add_argument(
        "--no-wait", action="store_true", help="end when all is uploaded, before it is indexed"
    )
    _add_base_url(files)


def _add_mcp(commands: Commands) -> None:
    host = _command(
        commands,
        "mcp",
        run.serve_host,
        f"MCP over standard input and output, for agent hosts; the key is in ${run.KEY_VARIABLE}",
    )
    _add_base_url(host)


def _add_models(commands: Commands) -> None:
    models = commands.add_parser("models", help="model weights").add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    _command(
        models,
        "fetch",
        run.fetch_models,
        "install the embedded model's weights, if need be, and verify them",
    )
    _command(
        models,
        "learn-words",
        run.learn_words,
        "learn from embedder.model_path in which directions its words differ, and write "
        "word_vectors.npz beside it; before the first memory is stored",
    )


def _add_bench(commands: Commands) -> None:
    measure = _command(
        commands,
        "bench",
        run.measure,
        "measure the running service on this machine for a minute, with texts of its own",
    )
    measure.add_argument(
        "--seconds",
        type=_between(1, 3600),
        default=60,
        metavar="N",
        help="how long in all, 1 to 3600 (%(default)s)",
    )
    measure.add_argument("--json", action="store_true", help="print one JSON object, not a table")
    _add_base_url(measure)


def _add_status(commands: Commands) -> None:
    show = _command(
        commands,
        "status",
        run.show_status,
        "show what the running service does: rates, latencies, shards and jobs",
    )
    show.add_argument("--watch", action="store_true", help="show it again and again, until Ctrl-C")
    show.add_argument(
        "--interval",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="between two looks with --watch, 0.2 or more (%(default)s)",
    )
    show.add_argument("--count", type=int, metavar="N", help="with --watch, end after N looks")
    _add_base_url(show, for_operator=True)


def _add_logs(commands: Commands) -> None:
    find = _command(
        commands, "logs", run.show_logs, "print what the service has logged, or that of one request"
    )
    find.add_argument(
        "request_id",
        nargs="?",
        metavar="REQUEST_ID",
        help="the X-Request-ID of an answer, or a job's id (default: all entries)",
    )
    find.add_argument("--request-id", metavar="ID", dest="named", help="the same")
    find.add_argument(
        "--level", choices=log_search.LEVELS, default="debug", help="the least severe to show"
    )
    find.add_argument("--last", type=_count, metavar="N", help="only the N latest entries")


def _add_monitoring(commands: Commands) -> None:
    write = _command(
        commands,
        "monitoring",
        run.write_monitoring,
        "write configuration of Prometheus and Grafana for the service and its Ray",
    )
    write.add_argument("directory", type=Path, metavar="DIR", help="where to")


def _add_completion(commands: Commands) -> None:
    complete = commands.add_parser(
        "completion", help="print a script that completes the commands in your shell"
    )
    complete.set_defaults(run=lambda parsed: run.complete(parsed, parser()))
    complete.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def _add_plugin(commands: Commands) -> None:
    actions = commands.add_parser("plugin", help="packages with plugins").add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    begin = actions.add_parser("new", help="write a package with a plugin of one endpoint")
    begin.set_defaults(run=plugins.new)
    begin.add_argument("name", metavar="NAME", help="of the plugin, such as bookmarks")
    begin.add_argument(
        "--directory", type=Path, metavar="DIR", help="where to (default: ./mneme_plugin_NAME)"
    )
    judge = actions.add_parser("check", help="run the contract over the plugins of a package")
    judge.set_defaults(run=plugins.check)
    judge.add_argument(
        "directory",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="with its pyproject.toml (default: this one)",
    )


def _command(commands: Commands, name: str, run: object, summary: str) -> argparse.ArgumentParser:
    """A subcommand with the options that choose the settings."""
    command = commands.add_parser(
        name, help=summary, description=summary[:1].upper() + summary[1:] + "."
    )
    command.set_defaults(run=run)
    command.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration file (default: $MNEME_CONFIG, else configs/local.yaml of a checkout, "
        "else ~/.config/mneme/mneme.yaml)",
    )
    command.add_argument(
        "--data-dir",
        metavar="DIR",
        help="directory that holds all data (default: ./data of a checkout, or where there is one, "
        "else the user's, such as ~/.local/share/mneme)",
    )
    command.add_argument("--host", help="address the service listens on")
    command.add_argument("--port", help="port the service listens on")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting, such as shards.count=2; repeatable",
    )
    return command


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def _between(least: int, most: int) -> Callable[[str], int]:
    def number_of(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"must be {least} to {most}")
        return number

    return number_of


def _id(text: str) -> str:
    if not text:  # as of a variable that is not set
        raise argparse.ArgumentTypeError(
            "must not be empty; leave the option out for no such limit"
        )
    return text


def _address(text: str) -> str:
    """Of a service, as the specification writes it, too: with the version's segment at its end."""
    return text.rstrip("/").removesuffix("/v1")


def _add_base_url(command: argparse.ArgumentParser, *, for_operator: bool = False) -> None:
    """for_operator: what sends the operator's token asks the service of the settings, or the one
    that is named, and no variable that was set for clients.
    """
    if for_operator:
        command.add_argument(
            "--base-url",
            type=_address,
            metavar="URL",
            help="where the service runs (default: from --host and --port)",
        )
        return
    command.add_argument(
        "--base-url",
        type=_address,
        metavar="URL",
        default=os.environ.get(run.BASE_URL_VARIABLE),
        help=f"where the service runs (default: ${run.BASE_URL_VARIABLE}, else from --host and "
        "--port)",
    )
