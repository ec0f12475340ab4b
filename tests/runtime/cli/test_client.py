"""The commands' client against servers that misbehave, and against none."""

from __future__ import annotations

import http.server
import socket
import threading

import pytest

from runtime.cli.arguments import parser
from runtime.cli.client import CallFailed, Client, local_base_url
from runtime.settings import Settings

ANSWERS = {
    "/created": (201, b'{"id": "x"}'),
    "/nothing": (204, b""),
    "/refused": (409, b'{"error": {"message": "It exists already."}}'),
    "/bare": (502, b""),
    "/list": (200, b"[1]"),
    "/page": (200, b"<html>"),
    "/odd": (400, b'{"error": "text"}'),
}


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Seen", self.headers.get("Authorization", ""))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silence: the base class writes every request to standard error."""


@pytest.fixture(scope="module")
def base_url():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_successes_are_decoded(base_url):
    with Client(base_url + "/") as client:
        assert client.call("GET", "/created") == {"id": "x"}
        assert client.call("GET", "/nothing") == {}


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/refused", 409, "GET /refused was refused with 409: It exists already."),
        ("/bare", 502, "GET /bare was refused with 502: no reason given."),
        ("/odd", 400, "GET /odd was refused with 400: no reason given."),
        ("/list", 200, "GET /list was refused with 200: no reason given."),
        ("/page", 200, "{base_url} answers, but not like this service: /page did not give JSON."),
    ],
)
def test_everything_else_is_one_sentence(base_url, path, status, sentence):
    with Client(base_url) as client, pytest.raises(CallFailed) as failed:
        client.call("GET", path)
    assert (failed.value.status, str(failed.value)) == (status, sentence.format(base_url=base_url))


def test_a_missing_service_is_named_with_the_way_to_start_one():
    with (
        socket.socket() as held
    ):  # bound but not listening: nobody else can take the port meanwhile
        held.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with Client(base_url) as client, pytest.raises(CallFailed) as failed:
            client.call("GET", "/v1/health")
    assert str(failed.value) == f"No service answers at {base_url}; start one with `mneme serve`."


@pytest.mark.parametrize("base_url", ["ftp://127.0.0.1", "http://[::1", "nowhere"])
def test_what_is_no_address_is_refused(base_url):
    with pytest.raises(CallFailed), Client(base_url) as client:
        client.call("GET", "/v1/health")


def test_a_proxy_named_in_the_environment_is_not_used_on_loopback(base_url, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with Client(base_url) as client:
        assert client.call("GET", "/created") == {"id": "x"}


@pytest.mark.parametrize(
    ("http", "expected"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"host": "0.0.0.0", "port": 9}, "http://127.0.0.1:9"),
        ({"host": "::", "port": 9}, "http://[::1]:9"),
        (
            {"host": "memory.example", "tls_certfile": "c", "tls_keyfile": "k"},
            "https://memory.example:8000",
        ),
    ],
)
def test_where_a_local_service_is(http, expected):
    assert local_base_url(Settings.load({"http": http})) == expected


def test_the_address_of_clients_is_none_that_the_operator_s_token_goes_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MNEME_BASE_URL", "https://elsewhere.example")
    for words in (["export", "a.jsonl"], ["ingest", "a.md"]):
        assert parser().parse_args(words).base_url == "https://elsewhere.example", words
    for words in (["status"], ["admin", "accounts"], ["keys", "create", "--email", "a@b.example"]):
        assert parser().parse_args(words).base_url is None, words


def test_a_key_that_no_header_holds_is_told_without_repeating_it() -> None:
    with pytest.raises(CallFailed, match=r"^The key holds a character that no API key has\.$"):
        Client("http://127.0.0.1:1", "mem_sk_é")
