"""An OpenAI-compatible endpoint on a local port, for tests: it transcribes and reads pictures, as
far as it is told what to answer.

It checks what it gets as a real one would: the form, the WAV file in it, the picture in the
message.
"""

from __future__ import annotations

import base64
import io
import json
import threading
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image


class Endpoint:
    """What it was asked, and what it answers: each segment as (begins, ends, text) of a piece, and
    the text of each picture.
    """

    def __init__(self, url: str):
        self.url = url
        self.segments: list[tuple[float, float, str]] = []
        self.text = ""
        self.language = "english"
        self.failures: list[int] = []  # statuses to answer with first
        self.seconds: list[float] = []  # of the pieces it was sent
        self.pictures: list[tuple[int, int]] = []
        self.authorization: str | None = None

    def transcribe(self, form: dict[str, bytes]) -> dict[str, Any]:
        with wave.open(io.BytesIO(form["file"])) as sent:
            assert (sent.getframerate(), sent.getnchannels(), sent.getsampwidth()) == (16_000, 1, 2)
            self.seconds.append(sent.getnframes() / sent.getframerate())
        assert form["response_format"] == b"verbose_json" and form["model"]
        segments = [
            {"id": n, "start": begins, "end": ends, "text": f" {text}"}
            for n, (begins, ends, text) in enumerate(self.segments)
        ]
        return {"text": self.text, "language": self.language, "segments": segments}

    def recognise(self, body: dict[str, Any]) -> dict[str, Any]:
        url = body["messages"][0]["content"][1]["image_url"]["url"]
        head, _, data = url.partition(",")
        assert head == "data:image/jpeg;base64"
        self.pictures.append(Image.open(io.BytesIO(base64.b64decode(data))).size)
        return {"choices": [{"message": {"role": "assistant", "content": self.text}}]}


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            served.authorization = self.headers.get("Authorization")
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = 200, {}
            if served.failures:
                status = served.failures.pop(0)
            elif self.path == "/v1/audio/transcriptions":
                message = BytesParser().parsebytes(
                    b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + raw
                )
                answer = served.transcribe(
                    {
                        part.get_param("name", header="content-disposition"): part.get_payload(
                            decode=True
                        )
                        for part in message.get_payload()
                    }
                )
            else:
                assert self.path == "/v1/chat/completions"
                answer = served.recognise(json.loads(raw))
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Endpoint(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
