"""What each command does, from parsed arguments to an exit status; the work is done by the modules
that it calls. What is heavy is imported only by the command that needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from runtime.cli import (
    demo,
    doctor,
    doctor_extras,
    doctor_plugins,
    import_memories,
    log_search,
    monitoring,
    moving_in,
    weights,
)
from runtime.cli.chosen_settings import core_settings, service_settings
from runtime.cli.client import CallFailed, Client, is_loopback, local_base_url
from runtime.extras import MCP, PARQUET
from runtime.importing import without_collector
from runtime.installation import Layout, LayoutError, Secrets, SecretsError
from runtime.log_lines import configure_logging, mask_secrets
from runtime.settings import Settings

log = logging.getLogger("mneme.cli")

OK, FAILED = 0, 1
UNAUTHORIZED = 401
PORT_MAX = 65_535
INTERVAL_SECONDS_MIN = 0.2
KEY_VARIABLE, BASE_URL_VARIABLE = "MNEME_API_KEY", "MNEME_BASE_URL"


class CommandFailed(Exception):
    """A command cannot do what it was asked; the message is one sentence."""


def serve(parsed: argparse.Namespace) -> int:
    _open_standard_streams()
    with without_collector():
        settings = service_settings(parsed)
        importlib.import_module("serve_app").registry(settings)  # refuses plugins that clash
        from runtime import serve as serving
    if parsed.demo_account and settings.environment == "production":
        raise CommandFailed(
            "--demo-account is for local installations; leave it out where environment is "
            "production."
        )
    weights.offered(settings, parsed.fetch_model)
    configure_logging(settings)
    if sys.stderr.isatty():
        print("Starting. The very first start compiles, up to a minute.", file=sys.stderr)

    return serving.serve(settings, partial(_announce, settings, demo_account=parsed.demo_account))


def _open_standard_streams() -> None:
    """Have something where whoever started this closed a standard stream: else the next file that
    is opened becomes it, such as the lock, for this program and for those that it becomes.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None and os.open(os.devnull, os.O_RDWR) == number:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _announce(settings: Settings, base_url: str, *, demo_account: bool) -> None:
    lines = [
        f"Mneme is ready at {base_url}",
        f"  docs      {base_url}/docs",
        f"  dashboard {base_url}/dashboard",
        f"  data      {settings.data_dir}",
    ]
    if settings.engine == "ray" and settings.ray.dashboard and settings.ray.address is None:
        from runtime.serve import RunDirectory

        shown = f"http://127.0.0.1:{settings.ray.dashboard_port}"
        lines.append(f"  Ray       {shown}   token in {RunDirectory.of(settings.data_dir).token}")
    if demo_account:
        try:
            account = demo.ensure_account(base_url, settings.data_dir)
            lines.append(
                f"  sign in   {account['email']}   password {account['password']}   (local demo "
                "account)"
            )
            lines.append(f"  API key   {account['api_key']}   (local demo account)")
            lines.append(f"  try       {sys.argv[0]} demo --base-url {base_url}")
        except (CallFailed, OSError) as failed:
            print(f"mneme serve: no demo account: {mask_secrets(str(failed))}", file=sys.stderr)
    try:
        print("\n".join(lines), flush=True)
    except (OSError, ValueError) as refused:  # such as of a pipe whose reader has left
        log.warning("standard output does not take what there is to say: %s", refused)


def run_demo(parsed: argparse.Namespace) -> int:
    base_url = parsed.base_url or local_base_url(core_settings(parsed))
    api_key = parsed.api_key
    if api_key is None:
        email = f"demo-{secrets.token_hex(8)}@example.com"
        api_key = demo.register(base_url, email, secrets.token_urlsafe(18), ["read", "write"])
        print(f"Registered the throw-away account {email}.")
    with Client(base_url, api_key) as client:
        demo.run(client, keep=parsed.keep)
    return OK


def import_file(parsed: argparse.Namespace) -> int:
    shared = {
        name: value
        for name in ("collection_id", "user_id")
        if (value := getattr(parsed, name)) is not None
    }
    given = import_memories.places_given(parsed.map)
    source = moving_in.open_source(parsed.file, parsed.format, given, parsed.only)
    if parsed.dry_run:
        found = import_memories.survey(source, shared, parsed.infer)
        print(import_memories.described(parsed.file, source.form, found))
        print("Nothing was stored.")
        return OK
    with _account(parsed) as client:
        report = import_memories.run(
            client, parsed.file, source, shared, parsed.infer, sys.stderr, print
        )
    stored = report.sent + report.skipped - report.refused_before
    print(
        f"{stored:,} of {report.total:,} records are stored, each once, however often it is sent; "
        f"{report.refused + report.refused_before:,} refused."
    )
    for refusal in report.refusals:
        print(f"refused: {refusal}", file=sys.stderr)
    return FAILED if report.refused + report.refused_before else OK


def export_file(parsed: argparse.Namespace) -> int:
    from runtime.cli import export_memories

    chosen = {
        name: value
        for name in ("collection_id", "user_id")
        if (value := getattr(parsed, name)) is not None
    }
    if parsed.include_superseded:
        chosen["include_superseded"] = "true"
    form = parsed.format or export_memories.format_of(parsed.file)
    if form == "parquet" and parsed.file == "-":
        raise CommandFailed("Parquet is written to a file, not to standard output; name one")
    if form == "parquet" and PARQUET.is_missing:
        raise CommandFailed(f"{PARQUET.purpose} needs more packages: {PARQUET.command}")
    path = Path(parsed.file)
    if parsed.file != "-" and not path.absolute().parent.is_dir():
        raise CommandFailed(f"there is no folder {path.absolute().parent}")
    if parsed.file != "-" and path.exists() and not path.is_file():
        # Whatever it is, such as a device, a file would be put in its place.
        raise CommandFailed(f"{path} is there, and is no file; - is standard output")
    with _account(parsed) as client:
        if parsed.file == "-":
            for memory, _ in export_memories.memories(client, chosen):
                sys.stdout.write(export_memories.line(memory))
            return OK
        count = export_memories.run(client, path, form, chosen, sys.stderr)
    print(f"{count:,} memories are in {parsed.file}.")
    return OK


def _demo_key(base_url: str, settings: Settings) -> str:
    """That of the local demo account, which is for the service on this data directory alone.
    Raises CommandFailed, CallFailed.
    """
    name_it = f"name the account's key with --api-key, or in {KEY_VARIABLE}"
    key = demo.kept_key(settings.data_dir)
    if key is None:
        raise CommandFailed(name_it)
    if not (is_loopback(base_url) and demo.works(base_url, key)):
        raise CommandFailed(
            f"the demo account of {settings.data_dir} is none of the service at {base_url}; "
            f"{name_it}"
        )
    return key


def _account(parsed: argparse.Namespace) -> Client:
    """A client with the account's key. A service that is not there, or does not know the key, is
    told at once. Raises CommandFailed, CallFailed.
    """
    api_key = parsed.api_key or os.environ.get(KEY_VARIABLE)
    if not api_key:
        raise CommandFailed(f"name the account's key with --api-key, or in {KEY_VARIABLE}")
    client = Client(parsed.base_url or local_base_url(core_settings(parsed)), api_key)
    client.call("GET", "/v1/auth/me")
    return client


def examine(parsed: argparse.Namespace) -> int:
    from runtime.cli import upgrade_check

    verdicts, settings = [], service_settings(parsed)
    registry, clashes = doctor_plugins.chosen(settings)
    findings = (
        doctor.examine(settings, registry.plugins),
        doctor_extras.examine(settings, registry.plugins),
        clashes,
        doctor_plugins.examine(settings, registry),
        upgrade_check.unusable(settings, registry.tables.values()),
    )
    for finding in itertools.chain(*findings):
        print(finding, flush=True)
        verdicts.append(finding.verdict)
    wrong = verdicts.count("wrong")
    print(
        f"\n{wrong} of {len(verdicts)} checks failed."
        if wrong
        else "\nEverything that is needed is there."
    )
    return FAILED if wrong else OK


def create_key(parsed: argparse.Namespace) -> int:
    settings = core_settings(parsed)
    if settings.cluster.name is None:
        Layout.load(
            settings.data_dir
            # a directory that no service has used is named as such, not as one whose secrets are
            # gone
        )
    operator_token = Secrets.of(settings).operator_token
    scopes = [scope.strip() for scope in parsed.scopes.split(",") if scope.strip()]
    with Client(parsed.base_url or local_base_url(settings), operator_token) as client:
        minted = client.call(
            "POST",
            "/v1/internal/keys",
            {"email": parsed.email, "name": parsed.name, "scopes": scopes},
        )
    print(minted["key"])
    return OK


def listen_for_events(parsed: argparse.Namespace) -> int:
    from runtime.cli import webhook_listener

    if not 0 <= parsed.port <= PORT_MAX:
        raise CommandFailed(f"--port must be 0 to {PORT_MAX}.")
    webhook_listener.listen(parsed.host, parsed.port, parsed.secret)
    return OK


def administer(parsed: argparse.Namespace) -> int:
    settings = (service_settings if parsed.admin.of_service else core_settings)(parsed)
    configure_logging(settings)
    return parsed.admin.run(parsed, settings)


def ingest(parsed: argparse.Namespace) -> int:
    from runtime.cli import ingest_files

    settings = core_settings(parsed)
    base_url = parsed.base_url or local_base_url(settings)
    api_key = parsed.api_key or os.environ.get(KEY_VARIABLE) or _demo_key(base_url, settings)
    with Client(base_url, api_key) as client:
        files = list(ingest_files.files_in(parsed.paths))
        outcome = ingest_files.run(
            client,
            files,
            parsed.collection,
            at_once=parsed.at_once,
            wait=not parsed.no_wait,
            tags=parsed.tags,
            out=sys.stderr,
        )
    print(ingest_files.summary(outcome))
    # In a folder files of other kinds may lie; whoever names one means it.
    named = set(parsed.paths).intersection(outcome.unsupported)
    return FAILED if outcome.failed or named else OK


def measure(parsed: argparse.Namespace) -> int:
    from runtime.cli import bench

    settings = core_settings(parsed)
    base_url = parsed.base_url or local_base_url(settings)
    on = bench.machine()
    with Client(base_url) as client:
        health = client.call("GET", "/v1/health")
    # The model of this machine is the service's own only where that is on this machine.
    model = bench.model_cost(settings) if is_loopback(base_url) else {}
    email = f"bench-{secrets.token_hex(8)}@example.com"
    scopes = ["read", "write", "admin"]
    key = demo.register(base_url, email, secrets.token_urlsafe(18), scopes)
    with Client(base_url, key) as client:
        try:
            begun, processor = time.perf_counter(), time.process_time()
            phases = bench.run(base_url, key, parsed.seconds, sys.stderr)
            share = (time.process_time() - processor) / (time.perf_counter() - begun)
            memories = client.call("GET", "/v1/memories?limit=1")["total_count"]
        finally:
            client.call("DELETE", "/v1/account?confirm=erase-account")
    service = {
        "base_url": base_url,
        "version": health["version"],
        "build": health["build"],
        "shards": health["shards"]["total"],
    }
    report = bench.as_report(phases, service, model, on, round(share, 2), memories)
    print(json.dumps(report, indent=2) if parsed.json else bench.described(report))
    return FAILED if any(each.failed for each in phases) else OK


def show_status(parsed: argparse.Namespace) -> int:
    from runtime.cli import status

    if parsed.interval < INTERVAL_SECONDS_MIN or (parsed.count is not None and parsed.count < 1):
        raise CommandFailed(
            f"--interval must be {INTERVAL_SECONDS_MIN} or more, and --count 1 or more."
        )
    settings = core_settings(parsed)
    token = settings.http.metrics_token
    secret = token.get_secret_value() if token else ""
    with contextlib.suppress(SecretsError, LayoutError, OSError):
        secret = secret or Secrets.of(settings).operator_token
    with Client(parsed.base_url or local_base_url(settings), secret) as client:
        count = parsed.count if parsed.watch else 1
        try:
            status.watch(client, parsed.interval, count, sys.stdout)
        except CallFailed as failed:
            if failed.status != UNAUTHORIZED:
                raise
            raise CommandFailed(
                "the service asks for another token than is known here; put http.metrics_token, or "
                "the operator's, where it has them: MNEME_HTTP__METRICS_TOKEN or "
                "MNEME_SECRETS__OPERATOR_TOKEN in the environment, a configuration, or --data-dir"
            ) from failed
    return OK


def write_monitoring(parsed: argparse.Namespace) -> int:
    try:
        todo = monitoring.write(core_settings(parsed), parsed.directory)
    except (monitoring.NothingToWrite, OSError) as failed:
        raise CommandFailed(str(failed)) from failed
    print("\n".join(todo))
    return OK


def show_logs(parsed: argparse.Namespace) -> int:
    directory = core_settings(parsed).data_dir / "logs"
    found, request_id = 0, parsed.named or parsed.request_id
    for entry in log_search.search(directory, request_id, parsed.level, parsed.last):
        found += 1
        print(f"{entry.file}: {entry.text}")
    if request_id and not found:
        raise CommandFailed(
            f"Nothing in {directory} names that request. Each one is there a moment after its "
            "answer, until newer ones take its place, unless log.requests is off."
        )
    return OK


def complete(parsed: argparse.Namespace, top: argparse.ArgumentParser) -> int:
    import shtab

    named = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}
    for argument in _arguments(top):
        if isinstance(argument.metavar, str) and argument.metavar in named:
            argument.complete = named[argument.metavar]  # type: ignore[attr-defined]
    print(shtab.complete(top, parsed.shell))
    return OK


def _arguments(top: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Those of a command and of all commands below it."""
    for argument in top._actions:
        yield argument
        if isinstance(argument, argparse._SubParsersAction):
            for below in argument.choices.values():
                yield from _arguments(below)


def serve_host(parsed: argparse.Namespace) -> int:
    api_key = os.environ.get(KEY_VARIABLE)
    if not api_key:
        raise CommandFailed(f"put the account's key into {KEY_VARIABLE}")
    if MCP.is_missing:
        raise CommandFailed(f"{MCP.purpose} needs more packages: {MCP.command}")
    if None in (sys.stdin, sys.stdout):
        raise CommandFailed(
            "standard input and output are closed; the host that starts it has both"
        )
    base_url = parsed.base_url or local_base_url(core_settings(parsed))
    with Client(base_url, api_key) as client:
        client.call(
            "GET", "/v1/auth/me"
        )  # a service that is not there, or does not know the key, is told in a sentence
    from runtime.cli import mcp_relay

    mcp_relay.relay(base_url, api_key)
    return OK


def learn_words(parsed: argparse.Namespace) -> int:
    """Write what word vectors need into the checkpoint's folder, whose space it becomes part of."""
    from runtime.inference import ModelUnusable, learn_word_directions

    settings = core_settings(parsed)
    try:
        path = learn_word_directions(settings, settings.data_dir)
    except (ModelUnusable, ValueError, OSError) as error:
        raise CommandFailed(str(error)) from error
    print(f"{path} was written. Copy it with the folder to every machine of the service.")
    return OK


def fetch_models(parsed: argparse.Namespace) -> int:
    finding = weights.fetch(core_settings(parsed), sys.stdout)
    print(finding)
    return OK if finding.verdict == "ok" else FAILED


def check_upgrade(parsed: argparse.Namespace) -> int:
    from runtime.cli import upgrade_check

    settings = service_settings(parsed)
    registry, _ = doctor_plugins.chosen(settings)
    verdicts = []
    for finding in upgrade_check.examine(settings, registry.tables.values()):
        print(finding, flush=True)
        verdicts.append(finding.verdict)
    print("\n" + upgrade_check.conclusion(verdicts))
    return FAILED if "wrong" in verdicts else OK
