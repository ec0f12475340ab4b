"""The sections that concern the installation: where it listens, where it keeps its data, what it
runs on and which models it calls.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from runtime.machine import usable_cores
from runtime.settings.section import Section

# A path counts from the directory the service is started in, and workers start elsewhere: so it is
# made absolute at once.
AbsolutePath = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]

PluginName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{1,39}$")]
ClusterName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


_ORIGIN = re.compile(
    r"(?!https:.*:443$|http:.*:80$)[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:]+\])(:[1-9]\d{0,4})?"
)


_ENDPOINT = re.compile(r"https?://([^\s/@]+@)?([A-Za-z0-9._-]+|\[[0-9a-f:]+\])(:\d{1,5})?(/\S*)?")
_PLACE = re.compile(r"(file:///|(s3|gs|az)://)[^\s?#][^?#]*")  # others keep nothing, or no promise


def _exact(origin: str) -> str:
    """An origin as browsers write it. Raises ValueError."""
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(
            "each is one exact origin as browsers write it, such as https://app.example or "
            "http://localhost:5173: lower case, no path, no *, and no port that its scheme implies"
        )
    return origin


ExactOrigin = Annotated[str, AfterValidator(_exact)]


def _endpoint(url: str) -> str:
    """The base URL of something that is called. Raises ValueError."""
    if not _ENDPOINT.fullmatch(url):
        raise ValueError("must be a URL such as http://127.0.0.1:11434/v1")
    return url


EndpointUrl = Annotated[str, AfterValidator(_endpoint)]


def _place(url: str) -> str:
    """Where objects are kept. Raises ValueError."""
    if not _PLACE.fullmatch(url):
        directory = f"file://{Path(url).absolute()}" if url.startswith(("/", ".")) else "file:///…"
        raise ValueError(
            f"must be a URL: {directory} for a directory, or s3://, gs:// or az:// with a bucket"
        )
    return url


class Plugins(Section, frozen=True):
    enabled: tuple[PluginName, ...] | None = Field(
        default=None,
        description=(
            "Installed plugins of other packages that the service has, by name; null has all of "
            "them."
        ),
    )


class Http(Section, frozen=True):
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one."
    )
    tls_certfile: AbsolutePath | None = Field(
        default=None,
        description="PEM file of the certificate chain; with tls_keyfile it serves HTTPS.",
    )
    tls_keyfile: AbsolutePath | None = Field(
        default=None, description="PEM file of the certificate's private key."
    )
    require_https: bool = Field(
        default=False, description="Refuse plain requests, /v1/health from loopback excepted."
    )
    hsts_seconds: int = Field(
        default=31_536_000,
        ge=0,
        description=(
            "For how long whoever was answered over HTTPS asks over nothing else "
            "(Strict-Transport-Security); 0 says nothing of it."
        ),
    )
    trusted_proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of proxies whose X-Forwarded-* headers count.",
    )
    cors_origins: tuple[ExactOrigin, ...] = Field(
        default=(),
        description=(
            "Origins whose pages may call the API from a browser, such as https://app.example; "
            "each exactly, never *."
        ),
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        min_length=16,
        max_length=255,
        description=(
            "Bearer token that /metrics asks for; null asks for none, and in production for the "
            "operator's."
        ),
    )

    @property
    def base_url(self) -> str:
        """Where a service with these settings is reached from its own machine."""
        return self.base_url_on(self.port)

    def base_url_on(self, port: int) -> str:
        """As base_url, for a service that took a free port."""
        everywhere = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1"}
        host = everywhere.get(self.host, self.host)
        scheme = "https" if self.tls_certfile else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


class ShardsSettings(Section, frozen=True):
    count: int = Field(
        default=0,
        ge=0,
        le=1_024,
        description=(
            "Shards. 0 takes one per two cores for a new data directory, and as many as an old one "
            "has."
        ),
    )

    readers: int | None = Field(
        default=None,
        ge=0,
        le=64,
        description=(
            "Processes beside each shard's own that search for it once it has more than one search "
            "at a time; each takes some 0.2 GB. null: on engine ray one for each core beyond one a "
            "shard, eight at most."
        ),
    )

    @property
    def resolved(self) -> int:
        """The number of shards to create, at least 1."""
        return self.count or max(1, usable_cores() // 2)


class Ray(Section, frozen=True):
    address: str | None = Field(
        default=None,
        description=(
            "Ray cluster to join, such as auto or host:6379; null starts one on this machine."
        ),
    )
    object_store_bytes: int = Field(
        default=150_000_000,
        ge=80_000_000,
        description="Bytes of shared memory for Ray's object store.",
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="Port of Ray's own metrics, open on all addresses; 0 takes a free one.",
    )
    dashboard: bool = Field(
        default=False,
        description=(
            "Start Ray's own dashboard on this machine's loopback, behind its token, and give Ray "
            "the service's metrics; a cluster that is joined gets these alone."
        ),
    )
    dashboard_port: int = Field(
        default=8265, ge=1, le=65_535, description="Port of Ray's own dashboard."
    )
    gateway_replicas: int = Field(
        default=0,
        ge=0,
        le=256,
        description="Gateway replicas; 0 takes one per two cores, at least one.",
    )
    gateway_replicas_min: int = Field(
        default=1,
        ge=1,
        le=256,
        description="Fewest gateway replicas where their number follows the load.",
    )
    gateway_replicas_max: int = Field(
        default=0,
        ge=0,
        le=1_024,
        description="Most of them then; 0 keeps the number at gateway_replicas.",
    )
    gateway_ongoing_target: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="Requests under way that one gateway replica should have.",
    )

    @property
    def resolved_gateway_replicas(self) -> int:
        """The number of gateway replicas to run, at least 1."""
        return self.gateway_replicas or max(1, usable_cores() // 2)


class ClusterSettings(Section, frozen=True):
    name: ClusterName | None = Field(
        default=None,
        description="Name of an installation on the nodes of a Ray cluster; null keeps it on one.",
    )
    node_lost_seconds: float = Field(
        default=5.0,
        ge=0,
        le=3_600,
        description="Seconds after which the shards of a node that is gone are lost.",
    )
    lease_seconds: float = Field(
        default=15.0,
        ge=1,
        le=600,
        description=(
            "Seconds a shard with an object store answers without hearing from it that it was not "
            "taken over; whoever takes it over waits as long."
        ),
    )
    lost_shards: Literal["restore", "wait"] = Field(
        default="restore", description="Restore lost shards elsewhere, or wait for their node."
    )


class EmbedderSettings(Section, frozen=True):
    backend: Literal["minilm", "openai"] = Field(
        default="minilm",
        description="minilm runs a model of this machine, the embedded one; openai calls base_url.",
    )
    base_url: EndpointUrl | None = Field(
        default=None,
        description="Base URL of an OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1.",
    )
    api_key: SecretStr | None = Field(default=None, description="Bearer token for base_url.")
    model: str | None = Field(default=None, description="Model name sent to base_url.")
    model_path: AbsolutePath | None = Field(
        default=None,
        description=(
            "Folder of another model: a sentence-transformers checkpoint (BERT, RoBERTa, XLM-R, "
            "MPNet), or a copy of the embedded one."
        ),
    )
    multilingual: bool = Field(
        default=False,
        description=(
            "Whether the embedded model has another one beside it that reads fifteen languages, "
            "and finds in one what is asked in another (pip install 'mneme[multilingual]')."
        ),
    )
    query_prefix: str | None = Field(
        default=None,
        max_length=1_000,
        description='Put before each question; null as the checkpoint says. E5 wants "query: ".',
    )
    passage_prefix: str | None = Field(
        default=None,
        max_length=1_000,
        description='Put before all other texts; null as the checkpoint says. E5: "passage: ".',
    )
    device: Literal["cpu", "cuda"] = Field(
        default="cpu",
        description=(
            "What a model of this machine runs on; cuda: a GPU, by PyTorch (pip install "
            "'mneme[gpu]')."
        ),
    )
    processes: int = Field(
        default=0,
        ge=0,
        le=256,
        description=(
            "Processes that run the model for all shards of engine ray, each on a GPU of its own "
            "with device cuda; 0 runs it in each shard's own."
        ),
    )
    threads: int = Field(
        default=0,
        ge=0,
        le=256,
        description=(
            "Threads of a model of this machine; 0: half of the cores, and while no other account "
            "asks all of them for long runs and for a text that is alone."
        ),
    )
    timeout_seconds: float = Field(
        default=10.0, gt=0, le=600, description="Seconds one embedding request may take."
    )
    queue_max: int = Field(
        default=4_096,
        ge=1,
        le=1_000_000,
        description="Texts that may wait for the embedder; more are refused at once.",
    )
    cache_entries: int = Field(
        default=4_096,
        ge=0,
        le=10_000_000,
        description="Vectors of recent texts kept in memory; 0 keeps none.",
    )


class PreviousEmbedder(EmbedderSettings, frozen=True):
    """The embedder that memories were stored with, while another one takes over."""

    backend: Literal["none", "lost", "minilm", "openai"] = Field(
        default="none",
        description=(
            "The model that is being replaced, until `mneme admin re-embed` is through; lost: it "
            "cannot be run any more, and searches go by words meanwhile."
        ),
    )


class Llm(Section, frozen=True):
    base_url: EndpointUrl | None = Field(
        default=None,
        description=(
            "Base URL of an OpenAI-compatible chat endpoint; null runs without a language model."
        ),
    )
    api_key: SecretStr | None = Field(default=None, description="Bearer token for base_url.")
    model: str | None = Field(default=None, description="Model name sent to base_url.")
    timeout_seconds: float = Field(
        default=60.0, gt=0, le=600, description="Seconds one completion may take."
    )


class TranscriberSettings(Section, frozen=True):
    base_url: EndpointUrl | None = Field(
        default=None,
        description="Base URL of an OpenAI-compatible transcription endpoint; null runs without.",
    )
    api_key: SecretStr | None = Field(default=None, description="Bearer token for base_url.")
    model: str = Field(default="whisper-1", description="Model name sent to base_url.")
    timeout_seconds: float = Field(
        default=120.0,
        gt=0,
        le=250,
        description="Seconds the transcription of one piece of a recording may take.",
    )


class Ocr(Section, frozen=True):
    base_url: EndpointUrl | None = Field(
        default=None,
        description=(
            "Base URL of an OpenAI-compatible endpoint for reading pictures; null runs without."
        ),
    )
    api_key: SecretStr | None = Field(default=None, description="Bearer token for base_url.")
    model: str | None = Field(default=None, description="Model name sent to base_url.")
    timeout_seconds: float = Field(
        default=60.0, gt=0, le=250, description="Seconds the reading of one picture may take."
    )


class RerankerSettings(Section, frozen=True):
    base_url: EndpointUrl | None = Field(
        default=None,
        description="Base URL of a reranker, POST {base_url}/rerank; null searches without one.",
    )
    api_key: SecretStr | None = Field(default=None, description="Bearer token for base_url.")
    model: str | None = Field(default=None, description="Model name sent to base_url.")
    timeout_seconds: float = Field(
        default=5.0,
        gt=0,
        le=60,
        description="Seconds one reranking may take, further attempts included.",
    )


class MemorySettings(Section, frozen=True):
    resident_bytes_max: int = Field(
        default=2 * 1024**3,
        ge=16 * 1024**2,
        description="Bytes of derived per-tenant state a shard keeps in memory.",
    )


class Auth(Section, frozen=True):
    registration: Literal["open", "mailed", "invite", "closed"] = Field(
        default="open",
        description=(
            "Who may register: anybody, whoever asks for an invitation and gets it by mail, "
            "whoever the operator invited, or nobody. All but `open` tell nobody who has an "
            "account."
        ),
    )
    verify_email: bool = Field(
        default=False,
        description=(
            "Mail a ticket to whoever registers, and mint no keys as the operator into accounts "
            "whose address nobody has proved."
        ),
    )
    token_seconds: int = Field(
        default=30 * 24 * 3600,
        ge=60,
        le=366 * 24 * 3600,
        description="Seconds a session token is valid.",
    )
    register_per_minute: int = Field(
        default=30,
        ge=0,
        description=(
            "Registrations from one client address (IPv6: /64) to one shard in 60 seconds; 0 lifts "
            "the limit."
        ),
    )
    login_per_minute: int = Field(
        default=30,
        ge=0,
        description=(
            "Logins from one client address (IPv6: /64) to one shard in 60 seconds; 0 lifts the "
            "limit."
        ),
    )
    fresh_login_seconds: int = Field(
        default=0,
        ge=0,
        le=366 * 24 * 3600,
        description=(
            "Seconds after its login in which a session may mint API keys and erase the account; 0 "
            "lets it at any time."
        ),
    )
    failed_login_wait_seconds_max: float = Field(
        default=60.0,
        ge=0,
        le=3_600,
        description=(
            "Seconds of the longest wait after failed logins to one account from one network; 0 "
            "lets it guess on."
        ),
    )
    argon2_time_cost: int = Field(
        default=3, ge=1, le=100, description="Passes of the password hash."
    )
    argon2_memory_kib: int = Field(
        default=65_536, ge=8, le=4 * 1024**2, description="KiB of memory of one password hash."
    )


class SecretsGiven(Section, frozen=True):
    service: SecretStr | None = Field(
        default=None,
        description=(
            "64 hex digits that sign API keys and wrap every account's data key; absent: a file in "
            "the data directory."
        ),
    )
    pepper: SecretStr | None = Field(
        default=None,
        description="64 hex digits that key stored digests; absent: a file in the data directory.",
    )
    operator_token: SecretStr | None = Field(
        default=None,
        description="Token of internal operations; absent: a file in the data directory.",
    )
    service_previous: SecretStr | None = Field(
        default=None,
        description=(
            "The service secret before this one: what it signed is accepted, and data keys that it "
            "wrapped are wrapped anew at the start."
        ),
    )
    pepper_previous: SecretStr | None = Field(
        default=None, description="The pepper before this one: its digests are found."
    )
    operator_token_previous: SecretStr | None = Field(
        default=None, description="The operator token before this one: it is accepted."
    )
    allow_generated: bool = Field(
        default=False,
        description=(
            "Start in production with secrets that were generated into the data directory, beside "
            "the data they protect."
        ),
    )


class Jobs(Section, frozen=True):
    at_once: int = Field(
        default=16, ge=1, le=256, description="Background jobs a shard runs at the same time."
    )


class Log(Section, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that is logged."
    )
    format: Literal["json", "text"] = Field(
        default="text", description="One JSON object per line, or text for people."
    )
    requests: bool = Field(
        default=True,
        description="Whether each answered request has a line in `logs/requests-*.log`, by which "
        "`mneme logs` finds it; written at the levels `info` and `debug`.",
    )


class Clock(Section, frozen=True):
    offset_seconds: int = Field(
        default=0, description="Seconds added to the clock; for tests, refused in production."
    )


class Storage(Section, frozen=True):
    map_bytes_max: int = Field(
        default=1024**4,
        ge=1024**2,
        description=(
            "Bytes of address space that a shard's store takes, and how large it may become; lower "
            "it only where the system refuses so much (`ulimit -v`, a hundred shards in one "
            "process)."
        ),
    )


class DurabilitySettings(Section, frozen=True):
    mode: Literal["local", "replicated"] = Field(
        default="local",
        description=(
            "A write is acknowledged when it is on this machine's disk, or not before the object "
            "store has it."
        ),
    )
    wait_seconds_max: float = Field(
        default=5.0,
        gt=0,
        le=60,
        description="Seconds a replicated write waits for the object store before its 503.",
    )
    outage_writes_may_be_lost: bool = Field(
        default=False,
        description=(
            "Mode local goes on while the object store does not answer; a take-over then loses "
            "every write acknowledged since, and the former owner may still answer beside it."
        ),
    )


class ObjectStoreSettings(Section, frozen=True):
    url: Annotated[str, AfterValidator(_place)] | None = Field(
        default=None,
        description=(
            "Where the log and snapshots go: file:///path, s3://bucket/prefix, gs:// or az://; "
            "null keeps none."
        ),
    )
    ship_interval_ms: int = Field(
        default=200,
        ge=1,
        le=60_000,
        description="Milliseconds for which commits gather into one object; not if replicated.",
    )
    backlog_bytes_max: int = Field(
        default=4 * 1024**3,
        ge=1024**2,
        description="Bytes of log that may wait on disk for an object store that does not answer.",
    )
    snapshot_interval_seconds: int = Field(
        default=6 * 3600, ge=60, description="Seconds between snapshots of a shard that changes."
    )
    snapshot_log_bytes: int = Field(
        default=1024**3,
        ge=1024**2,
        description="Bytes of shipped log after which a snapshot is taken sooner.",
    )
