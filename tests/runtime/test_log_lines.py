"""Log lines that people and machines can read, and no secret in any."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os

import pytest

from runtime.cluster import log_to_file
from runtime.log_lines import REQUEST_ID, configure_logging, mask_secrets
from runtime.settings import Settings

API_KEY = "mem_sk_" + "0123456789abcdef" * 4
SIGNING_SECRET = "whsec_" + "Ab-_9" * 8
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c3JfMSJ9.c2lnbmF0dXJl-_x"


@pytest.fixture
def logged():
    """Configure the process's logging for one test; -> a function from a format to the stream it
    writes to.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def configure(form: str, threshold: str = "info") -> io.StringIO:
        stream = io.StringIO()
        configure_logging(Settings.load({"log": {"format": form, "level": threshold}}), stream)
        return stream

    yield configure
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"key {API_KEY}.", "key mem_sk_****."),
        ("operator mem_op_" + "0f" * 32, "operator mem_op_****"),
        (f"signed with {SIGNING_SECRET}", "signed with whsec_****"),
        ("Authorization: Bearer abc.def/+=", "Authorization: Bearer ****"),
        ('{"authorization": "Token abc"}', '{"authorization": "Token ****"}'),
        (f"token {JWT} expired", "token ey**** expired"),
        ("sk-proj_1234567890 refused", "sk-**** refused"),
        ("the bearer of news", "the bearer **** news"),
        ("nothing to hide in mem_01 or tasks", "nothing to hide in mem_01 or tasks"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text, masked):
    assert mask_secrets(text) == masked


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_reaches_a_log_line_by_message_argument_field_or_traceback(logged, form):
    stream = logged(form)
    log = logging.getLogger("mneme.test")
    log.info(f"in the message {API_KEY}")
    log.info("as an argument %s", {"Authorization": f"Bearer {JWT}"})
    log.info("as a field", extra={"secret": SIGNING_SECRET})
    try:
        raise ValueError(f"in an exception {API_KEY}")
    except ValueError:
        log.exception("failed")
    text = stream.getvalue()
    assert "ValueError: in an exception mem_sk_****" in text
    for secret in (API_KEY, SIGNING_SECRET, JWT):
        assert secret not in text


def test_json_lines_carry_the_request_and_the_fields(logged):
    stream = logged("json")
    token = REQUEST_ID.set("req-1")
    logging.getLogger("mneme.test").warning("slow: %d ms", 12, extra={"operation": "search"})
    REQUEST_ID.reset(token)
    logging.getLogger("mneme.test").info("two\nlines", extra={"request_id": "req-2"})
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first.pop("at").endswith("Z")
    assert first == {
        "level": "warning",
        "logger": "mneme.test",
        "message": "slow: 12 ms",
        "request_id": "req-1",
        "operation": "search",
    }
    assert (second["message"], second["request_id"]) == ("two\nlines", "req-2")


def test_a_text_message_cannot_forge_a_second_line(logged):
    stream = logged("text")
    logging.getLogger("mneme.test").info(
        "name %s", "x\n2026-01-01 INFO forged", extra={"field": "a\rb"}
    )
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("mneme.test name x\\n2026-01-01 INFO forged field=a\\rb")


def test_the_level_is_a_threshold(logged):
    stream = logged("text", "error")
    logging.getLogger("mneme.test").warning("not this")
    logging.getLogger("mneme.test").error("this")
    assert "not this" not in stream.getvalue() and "this" in stream.getvalue()


def test_a_line_that_its_stream_does_not_take_is_lost_in_silence(
    logged: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """As those for a disk that is full, which a traceback each would fill no less."""
    reader, writer = os.pipe()
    os.close(reader)
    with contextlib.suppress(BrokenPipeError), os.fdopen(writer, "w") as stream:
        configure_logging(Settings.load({"log": {"format": "json"}}), stream)
        logging.getLogger("mneme.test").error("nobody reads this")
    assert capsys.readouterr().err == ""


def test_a_process_goes_on_where_its_log_file_cannot_be_written(logged, tmp_path, capsys):
    (tmp_path / "logs").write_text("a file where a directory belongs")
    log_to_file(Settings.load(None, {"data_dir": str(tmp_path)}), "supervisor")
    logging.getLogger("mneme.test").error("the node is gone")
    assert "supervisor.log cannot be written" in (told := capsys.readouterr().err)
    assert "the node is gone" in told
