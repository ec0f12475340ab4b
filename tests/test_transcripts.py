"""The dialogues in tests/transcripts, spoken again: every answer must be the one written there. Its
README tells the format.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.in_process import PASSWORD, in_process
from tests.support.served import Served

TRANSCRIPTS = Path(__file__).parent / "transcripts"
ALL = sorted(TRANSCRIPTS.glob("*/*.txt"))
ON_RAY = [
    TRANSCRIPTS / "memories/life_of_a_memory.txt",
    TRANSCRIPTS / "idempotency/one_write_per_key.txt",
]

SHOWN_HEADERS = (
    "Location", "ETag", "Retry-After", "Allow", "WWW-Authenticate", "X-Idempotent-Replay",
    "X-Should-Retry", "X-RateLimit-Limit",
)  # fmt: skip
ERROR_FIELDS = "error.code error.message error.param error.details"
NUMBERS = {"score", "normalized_score", "query_confidence", "processing_time_ms"}
VOLATILE = re.compile(
    r"(?P<secret>mem_sk_[0-9a-f]{64})|(?P<prefix>mem_sk_[0-9a-f]{12})\b|"
    r"(?P<id>[a-z]{3}_[0-9a-hjkmnp-tv-z]{32})"
    r"|(?P<token>eyJ[\w-]+\.[\w-]+\.[\w-]+)|(?P<request>req_[0-9a-f]{32})|"
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
)
LINE_CHARS_MAX = 110
UNTIL_SECONDS_MAX = 30
POLL_SECONDS = 0.01

Ask = Callable[..., httpx.Response]


@dataclass
class Turn:
    """One request and its answer. `said` holds the request's lines as they stand in the file."""

    said: list[str]
    fields: str = ""
    answer: str = ""

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    until: str = ""
    body: str = ""

    def __post_init__(self) -> None:
        self.method, _, self.path = self.said[0].removeprefix(">>> ").partition(" ")
        for number, line in enumerate(self.said[1:], 1):
            name, colon, value = line.partition(":")
            if not colon or not re.fullmatch(r"[\w-]+", name):
                self.body = "\n".join(self.said[number:]).strip()
                break
            if name == "until":
                self.until = value.strip()
            else:
                self.headers[name] = value.strip()


def read(path: Path) -> tuple[str, list[Turn]]:
    """The introduction and the turns of a transcript."""
    introduction, *rest = re.split(r"^(?=>>> )", path.read_text(), flags=re.MULTILINE)
    turns = []
    for part in rest:
        request, _, answer = part.partition("\n<<< ")
        lines = answer.rstrip().split("\n")
        fields = lines.pop(1) if len(lines) > 1 and lines[1].startswith("fields:") else ""
        turns.append(
            Turn(
                request.rstrip().split("\n"),
                fields.removeprefix("fields:").strip(),
                "\n".join(lines),
            )
        )
    return introduction, turns


class Dialogue:
    """Speaks the requests of one transcript, and writes down the answers with what is volatile
    replaced by names.
    """

    def __init__(self, ask: Ask, token: str, other: str):
        self._ask = ask
        self._token = token
        self._values: dict[str, str] = {"other": other}
        self._names: dict[str, str] = {}

    def answer(self, turn: Turn) -> str:
        """The answer as a transcript shows it, without its `fields` line."""
        headers = {"Authorization": f"Bearer {self._token}"} | {
            name: self._filled(value) for name, value in turn.headers.items()
        }
        headers = {name: value for name, value in headers.items() if value}
        content = None
        if turn.body:
            content = self._filled(turn.body).encode()
            headers.setdefault("Content-Type", "application/json")
            if headers["Content-Type"].startswith("multipart/"):
                content = content.replace(b"\n", b"\r\n") + b"\r\n"
        deadline = time.monotonic() + UNTIL_SECONDS_MAX
        while True:
            reply = self._ask(turn.method, self._filled(turn.path), content, headers)
            if not turn.until or self._is_reached(turn.until, reply):
                return self._written(reply, turn.fields)
            assert time.monotonic() < deadline, f"{turn.path} never had {turn.until}: {reply.text}"
            time.sleep(POLL_SECONDS)

    def _is_reached(self, until: str, reply: httpx.Response) -> bool:
        name, _, value = until.partition("=")
        return reply.status_code == 200 and json.dumps(reply.json().get(name)).strip('"') == value

    def _filled(self, text: str) -> str:
        return re.sub(r"{(\w+)}", lambda found: self._values.get(found[1], found[0]), text)

    def _written(self, reply: httpx.Response, fields: str) -> str:
        lines = [str(reply.status_code)]
        body = json.loads(reply.content) if reply.content else None
        wanted = (fields or (ERROR_FIELDS if reply.status_code >= 400 else "")).split()
        shown = None if body is None else _masked(_chosen(body, wanted) if wanted else body)
        # The body first, so that ids are named in the order in which a reader of the body meets
        # them.
        text = None if shown is None else _pretty(json.loads(self._named(json.dumps(shown))))
        lines += [
            f"{name}: {self._named(reply.headers[name])}"
            for name in SHOWN_HEADERS
            if name in reply.headers
        ]
        return "\n".join(lines if text is None else [*lines, text])

    def _named(self, text: str) -> str:
        cursors = re.sub(
            r'("next_cursor": ")([\w-]+)"',
            lambda found: f'{found[1]}{self._name("cursor", found[2])}"',
            text,
        )
        return VOLATILE.sub(self._replaced, cursors)

    def _replaced(self, found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind in ("time", "request", "prefix"):
            return f"{{{kind}}}"
        return self._name(found[0][:3] if kind == "id" else kind, found[0])

    def _name(self, kind: str, value: str) -> str:
        if value not in self._names:
            number = sum(name.rstrip("0123456789") == kind for name in self._names.values()) + 1
            self._names[value] = f"{kind}{number}"
            self._values[f"{kind}{number}"] = value
        return f"{{{self._names[value]}}}"


def _chosen(body: Any, paths: list[str]) -> Any:
    """Only these fields; "items.content" is the content of each item."""
    if isinstance(body, list):
        return [_chosen(item, paths) for item in body]
    if not isinstance(body, dict):
        return body
    wanted: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition(".")
        wanted.setdefault(name, []).extend([rest] if rest else [])
    return {
        name: _chosen(body[name], rest) if rest else body[name]
        for name, rest in wanted.items()
        if name in body
    }


def _masked(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _masked(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, name) for item in value]
    return "{number}" if name in NUMBERS and isinstance(value, float) and value else value


def _pretty(value: Any, indent: str = "") -> str:
    """JSON on one line where it fits, else an entry per line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= LINE_CHARS_MAX or not isinstance(value, dict | list) or not value:
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(deeper + _pretty(item, deeper) for item in value) + f"\n{indent}]"
    entries = [
        f"{deeper}{json.dumps(name)}: {_pretty(item, deeper)}" for name, item in value.items()
    ]
    return "{\n" + ",\n".join(entries) + f"\n{indent}}}"


def rerun(path: Path, ask: Ask, *, update: bool = False) -> None:
    """Speak a transcript and compare every answer; or write the answers down."""
    introduction, turns = read(path)
    dialogue = Dialogue(
        ask,
        register(ask, f"ada.{path.stem}@example.com"),
        register(ask, f"other.{path.stem}@example.com"),
    )
    for turn in turns:
        answer = dialogue.answer(turn)
        if update:
            turn.answer = answer
        assert answer == turn.answer, f"{path.relative_to(TRANSCRIPTS)}: {turn.said[0]}"
    if update:
        written = [
            "\n".join(
                [
                    *turn.said,
                    f"<<< {turn.answer.partition(chr(10))[0]}",
                    *([f"fields: {turn.fields}"] if turn.fields else []),
                ]
            )
            + ("\n" + turn.answer.partition("\n")[2]).rstrip()
            for turn in turns
        ]
        path.write_text(introduction + "\n\n".join(written) + "\n")


def register(ask: Ask, email: str) -> str:
    body = json.dumps({"email": email, "password": PASSWORD, "full_name": "Ada Lovelace"}).encode()
    answer = ask("POST", "/v1/auth/register", body, {"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text
    return answer.json()["access_token"]


@contextmanager
def asking(directory: Path) -> Iterator[Ask]:
    """A service in this process, asked with (method, path, content, headers)."""
    with in_process(directory, write__ready_wait_ms=30_000) as service:
        yield lambda method, path, content, headers: service.request(
            method, path, content, **headers
        )


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    with asking(tmp_path_factory.mktemp("transcripts")) as spoken:
        yield spoken


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_transcript_is_true(path: Path, ask: Ask, request: pytest.FixtureRequest) -> None:
    rerun(path, ask, update=request.config.getoption("--update-transcripts"))


@pytest.mark.ray
@pytest.mark.parametrize("path", ON_RAY, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_transcript_is_true_on_ray(path: Path, service_on_ray: Served) -> None:
    rerun(
        path,
        lambda method, path, content, headers: service_on_ray.http.request(
            method, path, content=content, headers=headers
        ),
    )
