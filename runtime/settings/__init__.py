"""Every knob of the service: its type, default, bounds and meaning, in one frozen tree.

Owns the names users write in a configuration file, in the environment and after --set, and the rule
of who wins:

    default  <  configuration file (YAML)  <  environment  <  command line
                section: {key: value}         MNEME_SECTION__KEY   --set section.key=value

Knows nothing of what a setting does; the module that reads it does. Fixed bounds, which nobody
should turn, are in limits.py. `Settings` has the core's sections, which are in installation.py and
tiers.py; each plugin declares its own, and `composed` adds them, as serve_app.Settings does for the
plugins that are installed. sources.py reads what users wrote.

Invariant: a Settings object is complete, in bounds and consistent. An unknown key or a bad value is
refused with one sentence that says which key, where it came from and what name was probably meant.
Settings pickle, since shard actors receive them, and secrets stay inside SecretStr, so that neither
a repr nor `describe()` shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

from runtime.settings.installation import (
    AbsolutePath,
    Auth,
    Clock,
    ClusterSettings,
    DurabilitySettings,
    EmbedderSettings,
    Http,
    Jobs,
    Llm,
    Log,
    MemorySettings,
    ObjectStoreSettings,
    Ocr,
    Plugins,
    PreviousEmbedder,
    Ray,
    RerankerSettings,
    SecretsGiven,
    ShardsSettings,
    Storage,
    TranscriberSettings,
)
from runtime.settings.places import default_config_file, default_data_dir
from runtime.settings.section import Section
from runtime.settings.sources import (
    CONFIG_VARIABLE,
    NODE_VARIABLE,
    VARIABLE_PREFIX,
    SettingsError,
    from_config,
    from_environ,
    from_overrides,
    sentence,
)
from runtime.settings.tiers import CORE_TERMS, Kept, Limits, Tiers, tiers_with

__all__ = [
    "CONFIG_VARIABLE",
    "CORE_TERMS",
    "LOCAL_PROFILE",
    "NODE_VARIABLE",
    "VARIABLE_PREFIX",
    "EmbedderSettings",
    "Kept",
    "Section",
    "Settings",
    "SettingsError",
    "composed",
    "default_config",
    "known_settings",
    "tiers_with",
]

# What configs/local.yaml says of the core's sections, for an installation that came without that
# file.
LOCAL_PROFILE: Mapping[str, Any] = {
    "auth": {"register_per_minute": 0, "login_per_minute": 0},
    "limits": {"endpoint_caps": False, "requests_per_minute": 0},
}


class Settings(Section, frozen=True):
    """All settings of the core. `Settings()` is the defaults; `Settings.load` reads the sources."""

    engine: Literal["ray", "local"] = Field(
        default="ray", description="ray runs on Ray Serve; local runs everything in one process."
    )
    data_dir: AbsolutePath = Field(
        default=Path("data"),
        validate_default=True,
        description=(
            "Directory that holds all data. Installed without a checkout: where no `data` is, the "
            "user's, such as `~/.local/share/mneme`."
        ),
    )
    environment: Literal["local", "production", "test"] = Field(
        default="local", description="What this installation is for; production is strict."
    )
    http: Http = Http()
    shards: ShardsSettings = ShardsSettings()
    ray: Ray = Ray()
    cluster: ClusterSettings = ClusterSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    previous_embedder: PreviousEmbedder = PreviousEmbedder()
    llm: Llm = Llm()
    transcriber: TranscriberSettings = TranscriberSettings()
    ocr: Ocr = Ocr()
    reranker: RerankerSettings = RerankerSettings()
    memory: MemorySettings = MemorySettings()
    limits: Limits = Limits()
    tiers: Tiers = Tiers()
    auth: Auth = Auth()
    secrets: SecretsGiven = SecretsGiven()
    jobs: Jobs = Jobs()
    log: Log = Log()
    clock: Clock = Clock()
    storage: Storage = Storage()
    durability: DurabilitySettings = DurabilitySettings()
    object_store: ObjectStoreSettings = ObjectStoreSettings()
    plugins: Plugins = Plugins()

    @model_validator(mode="after")
    def _is_consistent(self) -> Settings:
        if self.object_store.url is not None and self.object_store.url.startswith("file://"):
            objects = Path(self.object_store.url.removeprefix("file://")).absolute()
            if objects == self.data_dir or self.data_dir in objects.parents:
                raise ValueError(
                    "object_store.url lies in data_dir: what becomes of the one becomes of the "
                    "other. Name a directory of another disk"
                )
        if self.environment == "production" and self.clock.offset_seconds:
            raise ValueError("clock.offset_seconds must be 0 in production")
        if (self.http.tls_certfile is None) != (self.http.tls_keyfile is None):
            pair = ("http.tls_certfile", "http.tls_keyfile")
            given, missing = pair if self.http.tls_certfile else reversed(pair)
            raise ValueError(f"{missing} is missing: {given} needs it to serve HTTPS")
        if self.object_store.url is None and (
            self.durability.mode == "replicated" or self.cluster.name
        ):
            what = "cluster.name" if self.cluster.name else "durability.mode replicated"
            raise ValueError(f"object_store.url is missing: {what} needs it")
        if self.cluster.name is not None and self.engine != "ray":
            raise ValueError("engine must be ray: cluster.name needs it")
        for name, chosen in (
            ("embedder", self.embedder),
            ("previous_embedder", self.previous_embedder),
        ):
            if chosen.backend == "openai" and not (chosen.base_url and chosen.model):
                missing = f"{name}.model" if chosen.base_url else f"{name}.base_url"
                raise ValueError(f"{missing} is missing: {name}.backend openai needs it")
            if chosen.multilingual and chosen.backend != "minilm":
                raise ValueError(
                    f"{name}.backend must be minilm: {name}.multilingual goes with that model"
                )
        if self.ocr.base_url and not self.ocr.model:
            raise ValueError("ocr.model is missing: ocr.base_url needs it")
        if (self.reranker.base_url is None) != (self.reranker.model is None):
            given, missing = (
                ("base_url", "model") if self.reranker.base_url else ("model", "base_url")
            )
            raise ValueError(f"reranker.{missing} is missing: reranker.{given} needs it")
        return self

    @classmethod
    def load(
        cls,
        config: Path | Mapping[str, Any] | None = None,
        overrides: Iterable[str] | Mapping[str, Any] = (),
        environ: Mapping[str, str] | None = None,
        *,
        partial: bool = False,
    ) -> Self:
        """Read all sources and check the result.

        config     a YAML file, or its content as a nested mapping; None for the defaults alone
        overrides  "dotted.key=value" texts in order, or dotted key -> value
        environ    the environment; None reads none, so that a test sees only what it gives
        partial    leave alone what the file and the environment, which others read too, say of
                   sections that these settings do not have, and of what plugins add to those that
                   they do have

        Raises SettingsError.
        """
        known, widened = known_settings(cls), _widened(cls) if partial else None
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for name, value, origin in (
            *from_config(known, config, widened),
            *from_environ(known, environ or {}, widened),
            *from_overrides(known, overrides),
        ):
            values[name], origins[name] = value, origin
        if environ is not None and "data_dir" not in values:
            values["data_dir"], origins["data_dir"] = default_data_dir(environ), "the default"
        tree: dict[str, Any] = {}
        for name, value in values.items():
            section, _, key = name.rpartition(".")
            (tree.setdefault(section, {}) if section else tree)[key] = value
        try:
            return cls.model_validate(tree).on_node(environ or {})
        except ValidationError as invalid:
            raise SettingsError(sentence(known, invalid, origins)) from None

    def on_node(self, environ: Mapping[str, str]) -> Self:
        """These settings in a process of a node with this environment: a node of a cluster may have
        a data directory of its own.
        """
        if self.cluster.name is None or not environ.get(NODE_VARIABLE):
            return self
        return self.model_copy(
            update={"data_dir": Path(environ[NODE_VARIABLE]).expanduser().absolute()}
        )

    def core(self) -> Settings:
        """The core's sections alone, for a process that has no use for the plugins."""
        own = {name: getattr(self, name) for name in Settings.model_fields}
        return Settings.model_construct(**{**own, "tiers": self.tiers.core()})

    def describe(self) -> dict[str, Any]:
        """Dotted name -> JSON value of every setting, secrets as "********"."""
        described: dict[str, Any] = {}
        for name in known_settings(type(self)):
            section, _, key = name.rpartition(".")
            value = getattr(getattr(self, section) if section else self, key)
            if isinstance(value, SecretStr):
                value = "********"
            elif isinstance(value, Path):
                value = str(value)
            described[name] = list(value) if isinstance(value, tuple) else value
        return described


def composed(sections: Mapping[str, type[Section]]) -> type[Settings]:
    """The core's settings with further sections, for a module to derive its `Settings` from: a
    class that a module names pickles by that name, and so reaches the actors.
    """
    fields: dict[str, Any] = {name: (section, section()) for name, section in sections.items()}
    return create_model("Sections", __base__=Settings, **fields)


@cache
def known_settings(settings: type[Settings]) -> Mapping[str, FieldInfo]:
    """Dotted name -> field, of every setting: the core's in the order of Settings, each followed by
    the sections of plugins that say so.
    """
    behind: dict[str | None, list[str]] = {}
    for name, field in settings.model_fields.items():
        if name not in Settings.model_fields and (section := _section(field)):
            after = section.follows if section.follows in Settings.model_fields else None
            behind.setdefault(after, []).append(name)
    known: dict[str, FieldInfo] = {}
    for core in (*Settings.model_fields, None):
        for name in (*([core] if core else []), *behind.get(core, [])):
            field = settings.model_fields[name]
            section = _section(field)
            known |= (
                {f"{name}.{key}": inner for key, inner in section.model_fields.items()}
                if section
                else {name: field}
            )
    return known


def _widened(settings: type[Settings]) -> set[str]:
    """The names of the sections to which plugins add."""
    sections = {name: _section(field) for name, field in settings.model_fields.items()}
    return {name for name, section in sections.items() if section and section.widened}


def _section(field: FieldInfo) -> type[Section] | None:
    """The section that a field of the settings is, None for a setting by itself."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def default_config(
    environ: Mapping[str, str], profile: Mapping[str, Any]
) -> Path | Mapping[str, Any]:
    """The configuration used when none is named: $MNEME_CONFIG, else configs/local.yaml of this
    checkout, else the user's own (~/.config/mneme/mneme.yaml), else a profile that says what the
    checkout's file says.
    """
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE])
    return default_config_file(environ) or profile
