"""Sources in order, refusals that help, and no secret in sight."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.billing.settings import BillingSettings
from runtime.limits import TIERS
from runtime.settings import (
    Kept,
    Section,
    SettingsError,
    composed,
    default_config,
    known_settings,
    tiers_with,
)
from runtime.settings import Settings as CoreSettings
from serve_app import LOCAL_PROFILE, PLUGINS, Settings
from tests.support import ROOT

CONFIGS = ROOT / "configs"


def refusal(**sources) -> str:
    with pytest.raises(SettingsError) as refused:
        Settings.load(**sources)
    return str(refused.value)


def written(directory: Path, text: str) -> Path:
    path = directory / "mneme.yaml"
    path.write_text(text)
    return path


def test_each_source_wins_over_the_one_before(tmp_path):
    config = written(tmp_path, "http: {host: 10.0.0.1, port: 1}\nshards: {count: 3}\n")
    environ = {"MNEME_HTTP__PORT": "2", "MNEME_HTTP__HOST": "10.0.0.2", "PATH": "/bin"}
    settings = Settings.load(config, ["http.port=3"], environ)
    assert (settings.shards.count, settings.http.host, settings.http.port) == (3, "10.0.0.2", 3)
    assert settings.write == Settings().write


def test_the_last_of_two_overrides_wins():
    assert Settings.load(overrides=["http.port=1", "http.port=2"]).http.port == 2


def test_overrides_may_be_a_mapping_of_values_or_texts():
    settings = Settings.load(
        overrides={
            "http.port": 5,
            "limits.endpoint_caps": "false",
            "limits.requests_per_minute": "null",
        }
    )
    assert (
        settings.http.port,
        settings.limits.endpoint_caps,
        settings.limits.requests_per_minute,
    ) == (5, False, None)


@pytest.mark.parametrize("text", ["10.0.0.0/8,::1", "[10.0.0.0/8, ::1]", " 10.0.0.0/8 , ::1 ,"])
def test_a_list_given_as_text(text):
    assert Settings.load(environ={"MNEME_HTTP__TRUSTED_PROXIES": text}).http.trusted_proxies == (
        "10.0.0.0/8",
        "::1",
    )


def test_an_empty_variable_is_absence_where_absence_is_allowed():
    assert (
        Settings.load(
            {"llm": {"base_url": "http://x/v1"}}, environ={"MNEME_LLM__BASE_URL": ""}
        ).llm.base_url
        is None
    )


def test_paths_are_absolute_so_that_workers_elsewhere_find_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Settings.load(overrides=["data_dir=here"]).data_dir == tmp_path / "here"
    assert Settings().data_dir == tmp_path / "data"
    assert Settings.load(overrides=["data_dir=~/x"]).data_dir == Path.home() / "x"


def test_an_unknown_name_is_refused_with_its_source_and_the_nearest_name(tmp_path):
    config = written(tmp_path, "http: {prt: 1}\n")
    assert (
        refusal(config=config)
        == f"http.prt in {config} is not a setting; the nearest is http.port."
    )
    assert (
        refusal(overrides=["port=1"])
        == "port in the command line is not a setting; the nearest is http.port."
    )
    assert Settings.load(
        environ={"MNEME_BASE_URL": "http://x", "MNEME_API_KEY": "mem_sk_1"}
    ) == Settings.load(environ={})
    assert refusal(environ={"MNEME_HTTP__PROT": "1"}) == (
        "http.prot in the environment variable MNEME_HTTP__PROT is not a setting; the nearest is "
        "MNEME_HTTP__PORT."
    )
    assert (
        "htpp in" in (message := refusal(config=written(tmp_path, "htpp: {port: 1}\n")))
        and "is not a setting" in message
    )


@given(st.text(min_size=1, max_size=40))
def test_any_unknown_name_gets_one_sentence(name):
    if name not in known_settings(Settings):
        assert "is not a setting; the nearest is " in refusal(overrides={name: 1})


def test_a_bad_value_names_key_and_source_but_never_the_value(tmp_path):
    config = written(tmp_path, "http: {port: hunter2}\n")
    message = refusal(config=config)
    assert message.startswith(
        f"http.port in {config} is not valid: input should be a valid integer"
    )
    assert "hunter2" not in message
    assert "'ray' or 'local'" in refusal(overrides=["engine=rya"])
    assert "less than or equal to 65535" in refusal(environ={"MNEME_HTTP__PORT": "70000"})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("embedder.base_url=not a url", "must be a URL such as http"),
        ("llm.base_url=ftp://host/v1", "must be a URL such as http"),
        ("object_store.url=/var/objects", "file:///var/objects for a directory"),
        ("object_store.url=memory:///objects", "file:///… for a directory, or s3://"),
        ("object_store.url=http://host/objects", "file:///… for a directory, or s3://"),
        ("object_store.url=file://objects", "file:///… for a directory, or s3://"),
        ("object_store.url=file:///var/objects?new", "file:///… for a directory, or s3://"),
        ("object_store.url=file:///var/mneme/objects", "lies in data_dir"),
        ("object_store.url=file:///var/mneme", "lies in data_dir"),
        ("embedder.timeout_seconds=nan", "finite number"),
        ("http.metrics_token=short", "at least 16 characters, not 5."),
        ("=3", "A value in the command line has no name"),
    ],
)
def test_what_cannot_work_is_refused_with_what_would(given: str, expected: str) -> None:
    assert expected in refusal(overrides=["data_dir=/var/mneme", given])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 1\n", "must hold a mapping of sections"),
        ("http: 3\n", "http in {config} is a section"),
        ("http: {port: [\n", "is not valid YAML at line"),
        (
            "auth:\n  a: 1\nhttp: {}\nauth:\n  b: 1\n",
            "auth is written twice in the configuration file, again at line 4",
        ),
        (
            "http:\n  port: 1\n  port: 2\n",
            "port is written twice in the configuration file, again at line 3",
        ),
        ("? [http]\n: {port: 1}\n", "is not valid YAML"),
        ("http:\n  port: [1]\n", "http.port in {config} is not valid"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, text, expected):
    config = written(tmp_path, text)
    assert expected.format(config=config) in refusal(config=config)


def test_a_missing_or_unreadable_file_is_refused(tmp_path):
    assert (
        refusal(config=tmp_path / "gone.yaml")
        == f"The configuration file {tmp_path / 'gone.yaml'} does not exist."
    )
    assert "cannot be read" in refusal(config=tmp_path)


def test_an_empty_file_and_an_empty_section_are_the_defaults(tmp_path):
    assert (
        Settings.load(written(tmp_path, ""))
        == Settings()
        == Settings.load(written(tmp_path, "http:\n"))
    )


def test_an_override_without_a_value_is_refused():
    assert (
        refusal(overrides=["http.port"]) == "--set http.port must have the form section.key=value."
    )


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (
            ["environment=production", "clock.offset_seconds=5"],
            "clock.offset_seconds must be 0 in production (set in the command line).",
        ),
        (
            ["http.tls_certfile=a.pem"],
            "http.tls_keyfile is missing: http.tls_certfile needs it to serve HTTPS.",
        ),
        (
            ["http.tls_keyfile=a.pem"],
            "http.tls_certfile is missing: http.tls_keyfile needs it to serve HTTPS.",
        ),
        (
            ["embedder.backend=openai"],
            "embedder.base_url is missing: embedder.backend openai needs it.",
        ),
        (
            ["embedder.backend=openai", "embedder.base_url=http://x"],
            "embedder.model is missing: embedder.backend openai needs it.",
        ),
        (
            ["billing.provider=stripe"],
            "billing.stripe_api_key is missing: billing.provider stripe needs it.",
        ),
        (
            ["billing.provider=stripe", "billing.stripe_api_key=null"],
            "billing.stripe_api_key is missing: billing.provider stripe needs it (set in the "
            "command line).",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(overrides, expected):
    assert refusal(overrides=overrides) == expected


def test_settings_pickle_with_their_secrets_and_show_none():
    settings = Settings.load(
        environ={"MNEME_LLM__API_KEY": "sk-private", "MNEME_EMBEDDER__API_KEY": "sk-other"}
    )
    travelled = pickle.loads(pickle.dumps(settings))
    assert travelled == settings
    assert travelled.llm.api_key.get_secret_value() == "sk-private"
    assert settings.describe()["llm.api_key"] == "********"
    assert "sk-" not in f"{settings!r} {settings} {settings.describe()}"


def test_settings_pickle_by_reference_to_the_class_that_names_the_plugins():
    settings = Settings.load(overrides=["search.candidates=77", "llm.api_key=sk-private"])
    pickled = pickle.dumps(settings)
    assert b"serve_app" in pickled and b"model_fields" not in pickled
    script = (
        "import pickle, sys; settings = pickle.load(sys.stdin.buffer);"
        "import serve_app; from plugins.search import SearchSettings;"
        "assert type(settings) is serve_app.Settings;"
        "print(SearchSettings.of(settings).candidates, settings.llm.api_key.get_secret_value())"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", script], input=pickled, capture_output=True, check=True, cwd=ROOT
    )
    assert elsewhere.stdout.split() == [b"77", b"sk-private"]


def test_the_sections_of_every_plugin_are_settings():
    declared = {name: kind for plugin in PLUGINS for name, kind in plugin.settings.items()}
    assert declared and not declared.keys() & CoreSettings.model_fields.keys()
    known = known_settings(Settings)
    for name, section in declared.items():
        assert {f"{name}.{key}" for key in section.model_fields} <= known.keys()
        assert section.of(Settings()) == section()
    kept = [f"{tier}_{kept.name}" for tier in TIERS for plugin in PLUGINS for kept in plugin.keeps]
    assert {f"tiers.{name}" for name in kept} <= known.keys()
    assert len(known) == len(known_settings(CoreSettings)) + len(kept) + sum(
        len(section.model_fields) for section in declared.values()
    )


def test_a_section_is_listed_behind_the_one_it_follows():
    class Nowhere(Section, frozen=True):
        pause_ms: int = 5

    class BehindShards(Section, frozen=True):
        follows = "shards"
        pause_ms: int = 5

    class Wider(composed({"last": Nowhere, "second": BehindShards}), frozen=True):
        pass

    core, known = (list(known_settings(kind)) for kind in (CoreSettings, Wider))
    assert [name for name in known if name in core] == core and known[-1] == "last.pause_ms"
    assert known[known.index("second.pause_ms") - 1].startswith("shards.")
    assert Wider.load({"second": {"pause_ms": 7}}).second == BehindShards(pause_ms=7)
    assert BehindShards.of(Wider()).pause_ms == 5
    with pytest.raises(LookupError, match="has no section BehindShards"):
        BehindShards.of(Settings())


def test_what_plugins_keep_is_settings_of_each_tier_in_their_places():
    marks = Kept("marks", "Marks of the tier {tier}", {"free": 3, "pro": 9}, place=2)
    sheets = Kept("sheets", "Sheets of the tier {tier}", {}, place=1)
    another = Kept("marks", "Marks of another", {"free": 4}, place=3)

    class Tiers(tiers_with([marks, sheets, another]), frozen=True):
        pass

    class Wider(composed({"tiers": Tiers}), frozen=True):
        pass

    known = known_settings(Wider)
    names = [name for name in known if name.startswith("tiers.free_")]
    core = ["price_cents", "requests_per_minute", "credits"]
    assert names == [f"tiers.free_{term}" for term in (*core, "sheets", "marks")]
    assert known["tiers.pro_marks"].description == "Marks of the tier pro; -1 is unlimited."
    chosen = Wider.load({"tiers": {"starter_marks": 5}}, {"tiers.free_sheets": "7"})
    rooms = [chosen.tiers.terms(tier)["marks"] for tier in TIERS]
    assert (rooms, chosen.tiers.terms("free")["sheets"]) == ([3, 5, 9, -1, -1], 7)
    with pytest.raises(SettingsError, match=r"tiers\.free_marks in the command line is not valid"):
        Wider.load(overrides={"tiers.free_marks": -2})
    with pytest.raises(SettingsError, match=r"tiers\.free_marsk .* nearest is tiers\.free_marks"):
        Wider.load({"tiers": {"free_marsk": 1}})


def test_the_core_leaves_alone_what_plugins_keep():
    config = {"tiers": {"free_credits": 7, "free_memories": 8}}
    environ = {"MNEME_TIERS__PRO_CREDITS": "9", "MNEME_TIERS__PRO_MEMORIES": "many"}
    settings = CoreSettings.load(config, environ=environ, partial=True)
    assert (settings.tiers.free_credits, settings.tiers.pro_credits) == (7, 9)
    assert "memories" not in settings.tiers.terms("free")
    with pytest.raises(SettingsError, match="is not a setting"):
        CoreSettings.load(config)


def test_the_core_reads_its_sections_and_leaves_others_alone(tmp_path):
    config = written(tmp_path, "http: {port: 1}\nsearch: {candidates: many}\nanswers:\n")
    environ = {"MNEME_SEARCH__CANDIDATES": "many", "MNEME_HTTP__HOST": "10.0.0.2"}
    settings = CoreSettings.load(config, ["shards.count=2"], environ, partial=True)
    assert (settings.http.port, settings.http.host, settings.shards.count) == (1, "10.0.0.2", 2)
    for wrong in ("http: {prt: 1}\n", "prt: 1\n"):
        with pytest.raises(SettingsError, match=r"is not a setting; the nearest is http\.port"):
            CoreSettings.load(written(tmp_path, wrong), partial=True)
    with pytest.raises(SettingsError, match=r"billing\.provider in the command line is not a"):
        CoreSettings.load(overrides=["billing.provider=stripe"], partial=True)


def test_the_core_of_the_settings_is_what_the_core_would_have_read():
    tiers = {"free_credits": 7, "free_memories": 8}
    given = {"shards": {"count": 2}, "search": {"candidates": 77}, "tiers": tiers}
    assert Settings.load(given).core() == CoreSettings.load(given, partial=True)


def test_the_first_of_two_mistakes_is_told_in_the_order_of_the_settings():
    given = {
        "webhooks.timeout_seconds": -1,
        "documents.parser_seconds": -1,
        "clock.offset_seconds": "x",
    }
    assert refusal(overrides=given).startswith("documents.parser_seconds in")
    assert refusal(overrides=given | {"http.port": 0.5}).startswith("http.port in")


def test_settings_cannot_be_changed_and_serve_as_keys():
    assert {Settings(): 1}[Settings()] == 1
    with pytest.raises(ValueError, match="frozen"):
        Settings().http.port = 1


def test_every_setting_is_described_and_shown():
    assert all(field.description for field in known_settings(Settings).values())
    assert list(Settings().describe()) == list(known_settings(Settings))


def test_the_tiers_are_those_of_the_limits():
    assert get_args(BillingSettings.model_fields["default_tier"].annotation) == tuple(TIERS)


def test_the_shipped_configurations_load_and_say_what_they_promise():
    local, production, test = (
        Settings.load(CONFIGS / f"{name}.yaml") for name in ("local", "production", "test")
    )
    assert local == Settings.load(LOCAL_PROFILE)
    assert (
        local.billing.default_tier,
        local.limits.endpoint_caps,
        local.limits.requests_per_minute,
    ) == ("enterprise", False, 0)
    assert (local.http.host, local.http.require_https) == ("127.0.0.1", False)
    assert (
        production.billing.default_tier,
        production.limits.endpoint_caps,
        production.http.require_https,
    ) == ("free", True, True)
    assert production.environment == "production"
    assert (test.engine, test.http.port, test.shards.count) == ("local", 0, 1)


def test_the_default_configuration_is_the_named_one_then_the_shipped_one(tmp_path):
    assert default_config({"MNEME_CONFIG": str(tmp_path / "own.yaml")}, {}) == tmp_path / "own.yaml"
    assert default_config({}, {}) == CONFIGS / "local.yaml"
    assert Settings.load(environ={"MNEME_CONFIG": "own.yaml"}) == Settings()


def test_automatic_counts_are_at_least_one():
    assert Settings().shards.resolved >= 1
    assert (
        Settings.load(overrides=["shards.count=7", "ray.gateway_replicas=3"]).shards.resolved == 7
    )
    assert Settings().ray.resolved_gateway_replicas >= 1


def test_ranking_weights_are_settings_of_their_own():
    settings = Settings.load(overrides=["ranking.speaker=0", "ranking_notes.words=2"])
    assert settings.ranking.weights["speaker"] == 0.0 != settings.ranking_fast.weights["speaker"]
    assert settings.ranking_notes.weights["words"] == 2.0 != settings.ranking.weights["words"]
    assert (
        set(settings.ranking.weights)
        == set(settings.ranking_notes.weights)
        == set(settings.ranking_fast.weights)
    )
    assert (
        settings.ranking_fast.weights["nearby"] == 0.0
        and "confidence_middle" not in settings.ranking.weights
    )
