"""Every knob of the service: its type, default, bounds and meaning, in one frozen tree.

Owns the names users write in a configuration file, in the environment and after --set, and the rule of who wins:

    default  <  configuration file (YAML)  <  environment MNEME_<SECTION>__<KEY>  <  --set section.key=value

Knows nothing of what a setting does; the module that reads it does. Fixed bounds, which nobody should turn, are in limits.py.

Invariant: a Settings object is complete, in bounds and consistent. An unknown key or a bad value is refused with one sentence
that says which key, where it came from and what name was probably meant. Settings pickle, since shard actors receive them,
and secrets stay inside SecretStr, so that neither a repr nor `describe()` shows one.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

from runtime.limits import ENDPOINT_CAPS, TIERS

VARIABLE_PREFIX = "MNEME_"
CONFIG_VARIABLE = "MNEME_CONFIG"  # no setting: it names the configuration file
NODE_VARIABLE = "MNEME_NODE_DATA_DIR"  # nor this: set by a node of a cluster for all its processes, it says where that node's disk is
CLIENT_VARIABLES = ("MNEME_BASE_URL", "MNEME_API_KEY")  # no settings either: clients in the same shell read them
CONFIG_BYTES_MAX = 1024 * 1024

# What configs/local.yaml says, for an installation that came without that file.
LOCAL_PROFILE: Mapping[str, Any] = {
    "auth": {"register_per_minute": 0, "login_per_minute": 0},
    "billing": {"default_tier": "enterprise"},
    "limits": {"endpoint_caps": False, "requests_per_minute": 0},
    "dropin": {"enabled": True},
}


class SettingsError(Exception):
    """The configuration cannot be used; the message is one sentence for the person who wrote it."""


# A path counts from the directory the service is started in, and workers start elsewhere: so it is made absolute at once.
AbsolutePath = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
ClusterName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class Section(BaseModel):
    """A group of settings that concern one thing."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Http(Section):
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    tls_certfile: AbsolutePath | None = Field(None, description="PEM file of the certificate chain; with tls_keyfile it serves HTTPS.")
    tls_keyfile: AbsolutePath | None = Field(None, description="PEM file of the certificate's private key.")
    require_https: bool = Field(False, description="Refuse plain requests, /v1/health from loopback excepted.")
    trusted_proxies: tuple[str, ...] = Field((), description="Addresses or networks of proxies whose X-Forwarded-* headers count.")

    @property
    def base_url(self) -> str:
        """Where a service with these settings is reached from its own machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)
        return f"{'https' if self.tls_certfile else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"


class Shards(Section):
    count: int = Field(
        0, ge=0, le=1_024, description="Shards. 0 takes one per two cores for a new data directory, and as many as an old one has."
    )

    @property
    def resolved(self) -> int:
        """The number of shards to create, at least 1."""
        return self.count or max(1, (os.cpu_count() or 1) // 2)


class Ray(Section):
    address: str | None = Field(None, description="Ray cluster to join, such as auto or host:6379; null starts one on this machine.")
    object_store_bytes: int = Field(150_000_000, ge=80_000_000, description="Bytes of shared memory for Ray's object store.")
    metrics_port: int = Field(0, ge=0, le=65_535, description="Port of Ray's own metrics, open on all addresses; 0 takes a free one.")
    gateway_replicas: int = Field(0, ge=0, le=256, description="Gateway replicas; 0 takes one per two cores, at least one.")
    gateway_replicas_min: int = Field(1, ge=1, le=256, description="Fewest gateway replicas where their number follows the load.")
    gateway_replicas_max: int = Field(0, ge=0, le=1_024, description="Most of them then; 0 keeps the number at gateway_replicas.")
    gateway_ongoing_target: int = Field(64, ge=1, le=10_000, description="Requests under way that one gateway replica should have.")

    @property
    def resolved_gateway_replicas(self) -> int:
        """The number of gateway replicas to run, at least 1."""
        return self.gateway_replicas or max(1, (os.cpu_count() or 1) // 2)


class Cluster(Section):
    name: ClusterName | None = Field(None, description="Name of an installation on the nodes of a Ray cluster; null keeps it on one.")
    node_lost_seconds: float = Field(5.0, ge=0, le=3_600, description="Seconds after which the shards of a node that is gone are lost.")
    lost_shards: Literal["restore", "wait"] = Field("restore", description="Restore lost shards elsewhere, or wait for their node.")


class Embedder(Section):
    backend: Literal["minilm", "openai"] = Field("minilm", description="minilm runs the embedded model; openai calls base_url.")
    base_url: str | None = Field(None, description="Base URL of an OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1.")
    api_key: SecretStr | None = Field(None, description="Bearer token for base_url.")
    model: str | None = Field(None, description="Model name sent to base_url.")
    model_path: AbsolutePath | None = Field(None, description="Directory with a local copy of the embedded model's weights.")
    threads: int = Field(0, ge=0, le=256, description="Threads of the embedded model; 0 decides from the cores.")
    timeout_seconds: float = Field(10.0, gt=0, le=600, description="Seconds one embedding request may take.")
    queue_max: int = Field(4_096, ge=1, le=1_000_000, description="Texts that may wait for the embedder; more are refused at once.")
    cache_entries: int = Field(4_096, ge=0, le=10_000_000, description="Vectors of recent texts kept in memory; 0 keeps none.")


class Llm(Section):
    base_url: str | None = Field(None, description="Base URL of an OpenAI-compatible chat endpoint; null runs without a language model.")
    api_key: SecretStr | None = Field(None, description="Bearer token for base_url.")
    model: str | None = Field(None, description="Model name sent to base_url.")
    timeout_seconds: float = Field(60.0, gt=0, le=600, description="Seconds one completion may take.")


class Transcriber(Section):
    base_url: str | None = Field(None, description="Base URL of an OpenAI-compatible transcription endpoint; null runs without.")
    api_key: SecretStr | None = Field(None, description="Bearer token for base_url.")
    model: str = Field("whisper-1", description="Model name sent to base_url.")
    timeout_seconds: float = Field(120.0, gt=0, le=250, description="Seconds the transcription of one piece of a recording may take.")


class Ocr(Section):
    base_url: str | None = Field(None, description="Base URL of an OpenAI-compatible endpoint for reading pictures; null runs without.")
    api_key: SecretStr | None = Field(None, description="Bearer token for base_url.")
    model: str | None = Field(None, description="Model name sent to base_url.")
    timeout_seconds: float = Field(60.0, gt=0, le=250, description="Seconds the reading of one picture may take.")


class Documents(Section):
    max_upload_bytes: int = Field(50 * 1024**2, ge=1, description="Bytes of the largest file that can be uploaded; larger ones are 413.")
    parser_seconds: float = Field(120.0, gt=0, le=250, description="Seconds that the parser of one file may take.")
    parser_memory_bytes: int = Field(1024**3, ge=64 * 1024**2, description="Bytes of address space that the parser of one file may take.")


class Reranker(Section):
    base_url: str | None = Field(None, description="Base URL of a reranker, POST {base_url}/rerank; null searches without one.")
    api_key: SecretStr | None = Field(None, description="Bearer token for base_url.")
    model: str | None = Field(None, description="Model name sent to base_url.")
    timeout_seconds: float = Field(5.0, gt=0, le=60, description="Seconds one reranking may take, further attempts included.")


class Write(Section):
    ready_wait_ms: int = Field(1_500, ge=0, le=30_000, description="Milliseconds a write waits to be searchable before it answers 202.")
    wait_for_index_seconds_max: int = Field(30, ge=1, le=120, description="Seconds a write with wait_for_index may wait.")


class Memory(Section):
    resident_bytes_max: int = Field(2 * 1024**3, ge=16 * 1024**2, description="Bytes of derived per-tenant state a shard keeps in memory.")


class Search(Section):
    candidates: int = Field(
        60, ge=10, le=1_000, description="Candidates that each channel proposes; a hybrid search adds their neighbours in the session."
    )
    embedding_wait_ms: int = Field(
        2_000, ge=1, le=60_000, description="Milliseconds a search waits for its embedding before it goes on by words alone."
    )
    strange_cosine_min: float = Field(
        0.55,
        ge=0,
        le=1,
        description="The same for a query of nothing but words that the embedding model never met, such as random letters.",
    )
    archived_set_back: float = Field(
        0.05, ge=0, le=1, description="Share of the highest possible score by which archived memories are ranked lower."
    )
    cosine_min: float = Field(0.2, ge=0, le=1, description="Cosine from which a result without any of the query's words stands.")
    interactions: int = Field(
        100, ge=0, le=1_000, description="Candidates whose words are compared with the query's, best first; 0 leaves late interaction out."
    )


class Ranking(Section):
    """Weights of the ranking features (plugins/ranking.py says what each means) and how sure a score makes us.

    Learned on questions with known answers about conversations between two people, with the former weights as a prior
    (loadtests/learn_ranking.py). What confidence and conflict mean is learned on other conversations, the project's own
    (loadtests/calibrate.py).
    """

    words: float = Field(0.17, description="Weight of how near the memory's words come to each word of the query.")
    nearby: float = Field(0.66, description="The same, counting the words of its neighbours in the session too.")
    lexical: float = Field(0.17, description="Weight of the words of a memory and its neighbours.")
    semantic: float = Field(0.36, description="Weight of the meaning of a memory and its neighbours.")
    exact: float = Field(-0.05, description="Weight of the meaning of the memory alone.")
    session: float = Field(0.76, description="Weight of the best memory of the same session.")
    answer: float = Field(0.3, description="Weight of how well a question matches that the memory directly follows.")
    speaker: float = Field(0.23, description="Weight of whether the query names the memory's speaker, or another.")
    personal: float = Field(0.12, description="The same for a memory in the first person.")
    date: float = Field(0.48, description="Weight of how near the memory happened to a time that the query names.")
    time: float = Field(0.17, description="Weight of a time expression when the query asks when.")
    number: float = Field(0.05, description="Weight of a number when the query asks how many.")
    place: float = Field(0.17, description="Weight of names in the memory when the query asks where.")
    length: float = Field(0.07, description="Weight of the number of content words.")
    question: float = Field(-0.06, description="Weight of the memory being a question itself.")
    address: float = Field(-0.04, description="Weight of second-person words in the memory.")
    names: float = Field(0.08, description="Weight of names in the memory, whatever is asked.")
    dated: float = Field(0.03, description="Weight of a time expression in the memory, whatever is asked.")
    confidence_middle: float = Field(0.85, description="Best score at which query_confidence is one half.")
    confidence_slope: float = Field(4.1, gt=0, description="How steeply query_confidence rises with the score.")
    conflict_weight: float = Field(2.5, ge=0, description="By how much of a conflict of subjects the score that confidence looks at falls.")
    conflict_min: float = Field(
        -0.11, le=0, description="Conflict of subjects below which abstaining is recommended; it keeps 95 % of the answerable questions."
    )

    @property
    def weights(self) -> dict[str, float]:
        """Ranking feature -> weight."""
        return _weights(self)


@lru_cache(maxsize=8)
def _weights(ranking: Ranking) -> dict[str, float]:
    return {name: value for name, value in ranking if not name.startswith(("confidence_", "conflict_"))}


def _profile(name: str, **defaults: float) -> type[Ranking]:
    """Ranking with other defaults."""
    known = Ranking.model_fields
    own = {
        field: (Annotated[(float, Field(description=known[field].description), *known[field].metadata)], value)
        for field, value in defaults.items()
    }
    return create_model(name, __base__=Ranking, **own)


# Weights that are not named here are those of conversations.
RankingFast = _profile(
    "RankingFast",
    words=0.0, nearby=0.0, lexical=1.0, semantic=0.8, exact=0.25, session=0.8, answer=0.2, speaker=0.4, personal=0.1, date=0.4, time=0.18,
    number=0.06, place=0.15, length=0.2, question=-0.08, address=-0.1, names=0.08, dated=0.04,
    confidence_middle=0.95, confidence_slope=3.0, conflict_weight=2.9, conflict_min=-0.05,
)  # fmt: skip
RankingNotes = _profile(
    "RankingNotes",
    words=0.22, nearby=0.71, lexical=0.15, semantic=0.41, exact=0.0, session=0.0, answer=0.0, speaker=0.0, personal=0.0, time=0.18,
    number=0.07, place=0.19, length=-0.02, question=-0.1, address=-0.16, dated=0.02,
    confidence_middle=0.67, confidence_slope=8.3,
)  # fmt: skip


class Answers(Section):
    confidence_min: float = Field(0.3, ge=0, le=1, description="query_confidence below which an answer without a model is not given.")
    second_round_below: float = Field(0.4, ge=0, le=1, description="query_confidence below which a question is searched a second time.")


class Learning(Section):
    exploration_rate: float = Field(0.1, ge=0, le=0.2, description="Share of decisions drawn evenly, where the request names none.")
    cost_ask: float = Field(1.0, gt=0, description="Cost of asking a person, in any unit.")
    cost_wrong: float = Field(5.0, gt=0, description="Cost of acting wrongly, in the same unit; advice is to act above 1 - ask / wrong.")


class Limits(Section):
    requests_per_minute: int | None = Field(None, ge=0, description="Replaces the tier's requests per minute; 0 lifts the limit.")
    credits_per_month: int | None = Field(None, ge=0, description="Replaces the tier's credits per month; 0 lifts the limit.")
    features: bool = Field(True, description="Keep features to the tiers that have them; false opens all of them to every tier.")
    endpoint_caps: bool = Field(True, description="Apply the per-endpoint caps as well as the tier's rate.")
    search_per_minute: int = Field(ENDPOINT_CAPS["search"], ge=1, description="Endpoint cap of searches, per minute.")
    media_per_minute: int = Field(ENDPOINT_CAPS["media"], ge=1, description="Endpoint cap of media uploads, per minute.")
    batch_per_minute: int = Field(ENDPOINT_CAPS["batch"], ge=1, description="Endpoint cap of batch operations, per minute.")

    @property
    def caps(self) -> dict[str, int]:
        """Rate bucket -> requests per minute, where endpoint caps apply."""
        return {name: getattr(self, f"{name}_per_minute") for name in ENDPOINT_CAPS} if self.endpoint_caps else {}


class _TierTerms(Section):
    def terms(self, tier: str) -> dict[str, Any]:
        """What a tier is called, costs (cents a month, None is custom) and gives (requests a minute, credits a month, -1 unlimited)."""
        found = {term: getattr(self, f"{tier}_{term}") for term in ("price_cents", "requests_per_minute", "credits")}
        price = found["price_cents"]
        dollars = "" if price is None else f"${price // 100}" if price % 100 == 0 else f"${price / 100:.2f}"
        text = "custom" if price is None else f"{dollars} / month" if price else dollars
        return {"name": tier, "display_name": TIERS[tier]["display_name"], "price": text, **found}


def _tier_settings() -> dict[str, Any]:
    described = {
        "price_cents": (int | None, 0, "Price of the tier {name}, in cents a month; null is by agreement."),
        "requests_per_minute": (int, 0, "Requests per minute of the tier {name}; 0 is unlimited."),
        "credits": (int, -1, "Credits per month of the tier {name}; -1 is unlimited."),
    }
    return {
        f"{name}_{term}": (kind, Field(tier[term], ge=least, description=text.format(name=name)))
        for name, tier in TIERS.items()
        for term, (kind, least, text) in described.items()
    }


# The specification's table of tiers, each figure a setting: tiers.free_credits, tiers.pro_price_cents …
Tiers: type[_TierTerms] = create_model("Tiers", __base__=_TierTerms, **_tier_settings())


class Billing(Section):
    default_tier: Literal["free", "starter", "pro", "scale", "enterprise"] = Field("free", description="Tier of a new account.")
    currency: str = Field("usd", pattern="^[a-z]{3}$", description="ISO 4217 code of the currency of all prices.")
    issuer: str = Field("Mneme", max_length=255, description="Who issues the invoices: a name, and an address if you like.")
    metered_millicents: int = Field(0, ge=0, description="Thousandths of a cent that a credit costs on a tier with unlimited credits.")
    provider: Literal["manual", "stripe"] = Field("manual", description="Who collects invoices: the operator, or Stripe.")
    stripe_api_key: SecretStr | None = Field(None, description="Secret key of the Stripe account.")
    stripe_signing_secret: SecretStr | None = Field(None, description="Secret that signs what Stripe sends to /v1/billing/stripe/events.")
    stripe_api_base: str = Field("https://api.stripe.com", description="Where Stripe's API is.")
    upgrade_url: str | None = Field(None, description="Where customers upgrade; null is the dashboard of this service.")
    pricing_url: str | None = Field(None, description="Where the tiers are described; null is /v1/billing/tiers of this service.")


class Auth(Section):
    token_seconds: int = Field(30 * 24 * 3600, ge=60, le=366 * 24 * 3600, description="Seconds a session token is valid.")
    register_per_minute: int = Field(
        30, ge=0, description="Registrations from one client address to one shard in 60 seconds; 0 lifts the limit."
    )
    login_per_minute: int = Field(30, ge=0, description="Logins from one client address to one shard in 60 seconds; 0 lifts the limit.")
    argon2_time_cost: int = Field(3, ge=1, le=100, description="Passes of the password hash.")
    argon2_memory_kib: int = Field(65_536, ge=8, le=4 * 1024**2, description="KiB of memory of one password hash.")


class SecretsGiven(Section):
    service: SecretStr | None = Field(
        None, description="64 hex digits that sign API keys and wrap every account's data key; absent: a file in the data directory."
    )
    pepper: SecretStr | None = Field(None, description="64 hex digits that key stored digests; absent: a file in the data directory.")
    operator_token: SecretStr | None = Field(None, description="Token of internal operations; absent: a file in the data directory.")
    allow_generated: bool = Field(
        False, description="Start in production with secrets that were generated into the data directory, beside the data they protect."
    )


class Jobs(Section):
    at_once: int = Field(16, ge=1, le=256, description="Background jobs a shard runs at the same time.")


class Webhooks(Section):
    allow_private_networks: bool = Field(
        False, description="Let webhooks reach loopback and private addresses, for receivers on this machine or network."
    )
    backoff_seconds_min: float = Field(
        4.0, gt=0, le=3_600, description="Seconds before the second attempt of a delivery; each further wait is twice as long."
    )
    timeout_seconds: float = Field(30.0, gt=0, le=30, description="Seconds one attempt may take, looking up the name included.")
    disable_after_seconds: int = Field(
        120 * 3600, ge=1, le=366 * 24 * 3600, description="Seconds of nothing but failures after which a webhook is disabled."
    )


class Dropin(Section):
    enabled: bool = Field(False, description="Answer clients of the mem0 API, which send `Authorization: Token`, in their own shapes.")


class Log(Section):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severity that is logged.")
    format: Literal["json", "text"] = Field("text", description="One JSON object per line, or text for people.")


class Clock(Section):
    offset_seconds: int = Field(0, description="Seconds added to the clock; for tests, refused in production.")


class Storage(Section):
    map_bytes: int = Field(1024**3, ge=1024**2, description="Bytes of address space a shard's store starts with; it grows by itself.")


class Durability(Section):
    mode: Literal["local", "replicated"] = Field(
        "local", description="A write is acknowledged when it is on this machine's disk, or not before the object store has it."
    )
    wait_seconds_max: float = Field(5.0, gt=0, le=60, description="Seconds a replicated write waits for the object store before its 503.")


class ObjectStore(Section):
    url: str | None = Field(
        None,
        pattern=r"^[a-z0-9]+://",
        description="Where the log and snapshots go: file:///path, s3://bucket/prefix, gs:// or az://; null keeps none.",
    )
    ship_interval_ms: int = Field(
        200, ge=1, le=60_000, description="Milliseconds for which commits gather into one object; not if replicated."
    )
    backlog_bytes_max: int = Field(
        4 * 1024**3, ge=1024**2, description="Bytes of log that may wait on disk for an object store that does not answer."
    )
    snapshot_interval_seconds: int = Field(6 * 3600, ge=60, description="Seconds between snapshots of a shard that changes.")
    snapshot_log_bytes: int = Field(1024**3, ge=1024**2, description="Bytes of shipped log after which a snapshot is taken sooner.")


class Settings(Section):
    """All settings. `Settings()` is the defaults; `Settings.load` reads the sources."""

    engine: Literal["ray", "local"] = Field("ray", description="ray runs on Ray Serve; local runs everything in one process.")
    data_dir: AbsolutePath = Field(Path("data"), validate_default=True, description="Directory that holds all data.")
    environment: Literal["local", "production", "test"] = Field("local", description="What this installation is for; production is strict.")
    http: Http = Http()
    shards: Shards = Shards()
    ray: Ray = Ray()
    cluster: Cluster = Cluster()
    embedder: Embedder = Embedder()
    llm: Llm = Llm()
    transcriber: Transcriber = Transcriber()
    ocr: Ocr = Ocr()
    documents: Documents = Documents()
    reranker: Reranker = Reranker()
    write: Write = Write()
    memory: Memory = Memory()
    search: Search = Search()
    ranking: Ranking = Ranking()
    ranking_notes: RankingNotes = RankingNotes()
    ranking_fast: RankingFast = RankingFast()
    answers: Answers = Answers()
    learning: Learning = Learning()
    limits: Limits = Limits()
    tiers: Tiers = Tiers()
    billing: Billing = Billing()
    auth: Auth = Auth()
    secrets: SecretsGiven = SecretsGiven()
    jobs: Jobs = Jobs()
    webhooks: Webhooks = Webhooks()
    dropin: Dropin = Dropin()
    log: Log = Log()
    clock: Clock = Clock()
    storage: Storage = Storage()
    durability: Durability = Durability()
    object_store: ObjectStore = ObjectStore()

    @model_validator(mode="after")
    def _is_consistent(self) -> Settings:
        if self.environment == "production" and self.clock.offset_seconds:
            raise ValueError("clock.offset_seconds must be 0 in production")
        if (self.http.tls_certfile is None) != (self.http.tls_keyfile is None):
            pair = ("http.tls_certfile", "http.tls_keyfile")
            given, missing = pair if self.http.tls_certfile else reversed(pair)
            raise ValueError(f"{missing} is missing: {given} needs it to serve HTTPS")
        if self.billing.provider == "stripe" and self.billing.stripe_api_key is None:
            raise ValueError("billing.stripe_api_key is missing: billing.provider stripe needs it")
        if self.object_store.url is None and (self.durability.mode == "replicated" or self.cluster.name):
            what = "cluster.name" if self.cluster.name else "durability.mode replicated"
            raise ValueError(f"object_store.url is missing: {what} needs it")
        if self.cluster.name is not None and self.engine != "ray":
            raise ValueError("engine must be ray: cluster.name needs it")
        if self.embedder.backend == "openai" and not (self.embedder.base_url and self.embedder.model):
            missing = "embedder.model" if self.embedder.base_url else "embedder.base_url"
            raise ValueError(f"{missing} is missing: embedder.backend openai needs it")
        if self.ocr.base_url and not self.ocr.model:
            raise ValueError("ocr.model is missing: ocr.base_url needs it")
        if (self.reranker.base_url is None) != (self.reranker.model is None):
            given, missing = ("base_url", "model") if self.reranker.base_url else ("model", "base_url")
            raise ValueError(f"reranker.{missing} is missing: reranker.{given} needs it")
        return self

    @classmethod
    def load(
        cls,
        config: Path | Mapping[str, Any] | None = None,
        overrides: Iterable[str] | Mapping[str, Any] = (),
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Read all sources and check the result.

        config     a YAML file, or its content as a nested mapping; None for the defaults alone
        overrides  "dotted.key=value" texts in order, or dotted key -> value
        environ    the environment; None reads none, so that a test sees only what it gives

        Raises SettingsError.
        """
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for name, value, origin in (*_from_config(config), *_from_environ(environ or {}), *_from_overrides(overrides)):
            values[name], origins[name] = value, origin
        tree: dict[str, Any] = {}
        for name, value in values.items():
            section, _, key = name.rpartition(".")
            (tree.setdefault(section, {}) if section else tree)[key] = value
        try:
            return cls.model_validate(tree).on_node(environ or {})
        except ValidationError as invalid:
            raise SettingsError(_sentence(invalid, origins)) from None

    def on_node(self, environ: Mapping[str, str]) -> Settings:
        """These settings in a process of a node with this environment: a node of a cluster may have a data directory of its own."""
        if self.cluster.name is None or not environ.get(NODE_VARIABLE):
            return self
        return self.model_copy(update={"data_dir": Path(environ[NODE_VARIABLE]).expanduser().absolute()})

    def describe(self) -> dict[str, Any]:
        """Dotted name -> JSON value of every setting, secrets as "********"."""
        described: dict[str, Any] = {}
        for name in known_settings():
            section, _, key = name.rpartition(".")
            value = getattr(getattr(self, section) if section else self, key)
            if isinstance(value, SecretStr):
                value = "********"
            elif isinstance(value, Path):
                value = str(value)
            described[name] = list(value) if isinstance(value, tuple) else value
        return described


@cache
def known_settings() -> Mapping[str, FieldInfo]:
    """Dotted name -> field, of every setting, in the order of this file."""
    known: dict[str, FieldInfo] = {}
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            known |= {f"{name}.{key}": inner for key, inner in field.annotation.model_fields.items()}
        else:
            known[name] = field
    return known


def default_config(environ: Mapping[str, str]) -> Path | Mapping[str, Any]:
    """The configuration used when none is named: $MNEME_CONFIG, else configs/local.yaml of this checkout, else the same built in."""
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE])
    beside = Path(__file__).resolve().parent.parent / "configs" / "local.yaml"
    return beside if beside.exists() else LOCAL_PROFILE


def _from_config(config: Path | Mapping[str, Any] | None) -> Iterator[tuple[str, Any, str]]:
    if config is None:
        return
    origin = str(config) if isinstance(config, Path) else "the built-in profile"
    content = _read_yaml(config) if isinstance(config, Path) else config
    if not isinstance(content, Mapping):
        raise SettingsError(f"The configuration file {origin} must hold a mapping of sections, not a {type(content).__name__}.")
    known = known_settings()
    sections = {name.split(".")[0] for name in known if "." in name}
    for name, value in content.items():
        if name not in sections:
            yield _known(str(name), origin), value, origin
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                yield _known(f"{name}.{key}", origin), inner, origin
        elif value is not None:
            raise SettingsError(f"{name} in {origin} is a section: write its settings below it, each as `key: value`.")


def _read_yaml(path: Path) -> Any:
    try:
        if path.stat().st_size > CONFIG_BYTES_MAX:
            raise SettingsError(f"The configuration file {path} is larger than {CONFIG_BYTES_MAX} bytes.")
        return yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        raise SettingsError(f"The configuration file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError) as unreadable:
        raise SettingsError(f"The configuration file {path} cannot be read: {unreadable}.") from None
    except yaml.YAMLError as malformed:
        mark = getattr(malformed, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise SettingsError(f"The configuration file {path} is not valid YAML{where}.") from None


def _from_environ(environ: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    for variable in sorted(environ):
        if variable.startswith(VARIABLE_PREFIX) and variable not in (CONFIG_VARIABLE, NODE_VARIABLE, *CLIENT_VARIABLES):
            origin = f"the environment variable {variable}"
            name = variable.removeprefix(VARIABLE_PREFIX).lower().replace("__", ".")
            name = _known(name, origin, spelling=_variable)
            yield name, _parsed(name, environ[variable]), origin


def _from_overrides(overrides: Iterable[str] | Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    origin = "the command line"
    if isinstance(overrides, Mapping):
        for name, value in overrides.items():
            yield _known(name, origin), _parsed(name, value) if isinstance(value, str) else value, origin
        return
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f"--set {text} must have the form section.key=value.")
        name = _known(name.strip(), origin)
        yield name, _parsed(name, value), origin


def _variable(name: str) -> str:
    return VARIABLE_PREFIX + name.replace(".", "__").upper()


def _known(name: str, origin: str, spelling: Any = str) -> str:
    """The name itself when it is a setting; SettingsError with the nearest one otherwise."""
    known = known_settings()
    if name in known:
        return name
    # A bare key ("port") is nearest to the full names that end in it, which plain similarity would rank low.
    nearest = [full for full in known if full.rpartition(".")[2] == name] or difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    raise SettingsError(f"{name} in {origin} is not a setting; the nearest is {spelling(nearest[0])}.")


def _parsed(name: str, text: str) -> Any:
    """A value given as text, as far as its setting's type needs it: lists, absence; numbers and booleans pydantic reads itself."""
    annotation = known_settings()[name].annotation
    if type(None) in get_args(annotation) and text.strip().lower() in ("", "null", "none"):
        return None
    if get_origin(annotation) is tuple:
        return [part.strip() for part in text.strip().strip("[]").split(",") if part.strip()]
    return text


def _sentence(invalid: ValidationError, origins: Mapping[str, str]) -> str:
    """The first finding of pydantic as one sentence with the key and its source, and without the rejected value."""
    finding = invalid.errors(include_url=False, include_input=False, include_context=False)[0]
    name = ".".join(str(part) for part in finding["loc"] if isinstance(part, str))
    message = finding["msg"].removeprefix("Value error, ")
    if not name:  # a finding about several settings together: its message opens with the key
        name = message.split(" ", 1)[0]
        return f"{message} (set in {origins[name]})." if name in origins else f"{message}."
    # pydantic appends the member of a union to the location, such as http.tls_certfile.function-after
    while name not in known_settings() and "." in name:
        name = name.rpartition(".")[0]
    return f"{name} in {origins.get(name, 'the defaults')} is not valid: {message[:1].lower()}{message[1:]}."
