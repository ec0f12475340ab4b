"""The confined process by itself: what it may not do, how it ends, and what is taken for what."""

from __future__ import annotations

import asyncio
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from plugins.documents import parser
from plugins.documents.parser import Leash, StoredDocument, parse_file
from plugins.documents.parsing import audio, formats, plain
from plugins.documents.parsing.extraction import ParseFailed
from plugins.documents.parsing.voice_activity import SpeechFinder
from storage.blobs import Blob, BlobStore
from tests.support import ROOT, corpus, sounds
from tests.support.parsers import parsers

MEMORY = 1024**3

FORBIDDEN = {
    "a socket": "import socket; socket.socket()",
    "a socket without Python": (
        "raise OSError(ctypes.get_errno()) if libc.socket(2, 1, 0) < 0 else None"
    ),
    "a program": "import subprocess; subprocess.run(['/bin/true'])",
    "a program without Python": (
        "raise OSError(ctypes.get_errno()) if libc.execv(b'/bin/true', None) < 0 else None"
    ),
    "a signal": "import os; os.kill(os.getppid(), 0)",
    "a signal without Python": "raise OSError(ctypes.get_errno()) if libc.kill(1, 0) < 0 else None",
    "a file": "open('/tmp/mneme-parser-was-here', 'w').write('x')",
    "removing a file": "import os; os.remove('/tmp/nothing')",
    "much memory": "bytearray(2 * 1024**3)",
}
# What code in a decoder would do, without Python; each gives less than 0 where it is refused, and
# does no harm where it is not. A file of the service lies at {file}, its process is {parent}.
NATIVE = {
    "the environment of the service": "libc.open(b'/proc/{parent}/environ', 0)",
    "the memory of the service": "libc.open(b'/proc/{parent}/mem', 0)",
    "its own memory as a file": "libc.open(b'/proc/self/mem', 2)",
    "a file of the service": "libc.open(b'{file}', 0)",
    "writing a file of the service": "libc.open(b'{file}', 2)",
    "another file": "libc.open(b'/etc/hostname', 0)",
    "a list of files": "libc.open(b'/tmp', 0o200000)",
    "a new file": "libc.open(b'{file}.new', 0o101, 0o600)",
    "removing a file": "libc.unlink(b'{file}')",
    "renaming a file": "libc.rename(b'{file}', b'{file}.away')",
    "cutting a file short": "libc.truncate(b'{file}', ctypes.c_long(0))",
    "a file in memory": "libc.memfd_create(b'x', 0)",
    "a map that others see": "-(libc.mmap(None, 4096, 3, 0x21, -1, 0) == -1)",
    "a process": "libc.fork() or os._exit(0)",
    "a process by clone": "libc.syscall({clone}, 17, 0, 0, 0, 0) or os._exit(0)",
    "a process by clone3": "libc.syscall(435, b'\\0' * 88, 88) or os._exit(0)",
    "a signal to a thread": "libc.syscall({tgkill}, {parent}, {parent}, 0)",
    "a descriptor of a process": "libc.syscall(434, {parent}, 0)",
    "the memory of a process": "libc.syscall({process_vm_readv}, {parent}, 0, 0, 0, 0, 0)",
    "signals by way of a file": "libc.fcntl(1, 8, {parent})",
    "a name space": "libc.unshare(0x10000000)",
    "another user": "libc.setuid(0)",
    "a program in the kernel": "libc.syscall({bpf}, 0, 0, 0)",
    "rings": "libc.syscall(425, 1, 0)",
    "keys": "libc.syscall({keyctl}, 0, 0)",
}
NUMBERS = {
    "x86_64": {"clone": 56, "tgkill": 234, "process_vm_readv": 310, "bpf": 321, "keyctl": 250},
    "aarch64": {"clone": 220, "tgkill": 131, "process_vm_readv": 270, "bpf": 280, "keyctl": 219},
}


def test_nothing_is_left_to_code_in_a_decoder(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("of the service")
    told = {"file": file, "parent": os.getpid(), **NUMBERS[platform.machine()]}
    tries = {name: code.format(**told) for name, code in NATIVE.items()}
    script = f"""
import ctypes, os
from parsing.sandbox import confine, missing
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_long
assert missing() == []
confine({MEMORY}, 10)
for name, code in {tries!r}.items():
    if eval(code) >= 0:
        print(name)
print(open(1, "wb", buffering=0, closefd=False).write(b"end "))
"""
    ended = run_beside_parsers(script)
    assert (ended.stdout.split(), ended.stderr) == (["end", "4"], "")
    assert file.read_text() == "of the service"


def test_what_a_parser_needs_later_it_can_have() -> None:
    """Codecs, formats and libraries that are loaded only when a file asks for them; threads."""
    script = f"""
import threading
from parsing.sandbox import confine
confine({MEMORY}, 10)
assert "Grüße".encode("cp437") and "Привет".encode("koi8-r")
import decimal, sqlite3, xml.dom.minidom
from PIL import TiffImagePlugin
import numpy.fft
thread = threading.Thread(target=print, args=("end",))
thread.start()
thread.join()
"""
    ended = run_beside_parsers(script)
    assert (ended.stdout.strip(), ended.stderr) == ("end", "")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_parser_cannot_have(what: str) -> None:
    script = f"""
import ctypes, sys
from parsing.sandbox import confine
libc = ctypes.CDLL(None, use_errno=True)
confine({MEMORY}, 10)
try:
    {FORBIDDEN[what]}
except (OSError, MemoryError) as refused:
    print(type(refused).__name__)
else:
    print("allowed")
"""
    ended = run_beside_parsers(script)
    assert ended.stdout.strip() in ("PermissionError", "OSError", "MemoryError"), (
        ended.stdout,
        ended.stderr,
    )


def run_beside_parsers(script: str) -> subprocess.CompletedProcess[str]:
    """A script that finds the package of the parsers, as the child does."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT / "plugins/documents",
        timeout=60,
        check=False,
    )


def test_where_nothing_confines_nothing_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A machine without Landlock is played by a child whose sandbox says so."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT / 'plugins/documents')!r})\n"
        "import parsing.sandbox\n"
        "parsing.sandbox.missing = lambda: ['Landlock']\n"
    )
    monkeypatch.setattr(parser, "FOLDER", tmp_path)
    order = {"task": "read", "media_type": formats.TXT, "filename": "a.txt"}
    with opened(b"Hello.") as file:
        assert parse_file(file, order, MEMORY, 30).extraction is not None
        with pytest.raises(ParseFailed) as failed:
            parse_file(file, {**order, "confined": True}, MEMORY, 30)
    assert failed.value.reason == "parser_not_confined"
    assert "mneme doctor" in failed.value.message


def opened(content: bytes) -> io.BufferedRandom:
    file = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    file.write(content)
    file.seek(0)
    return file


def test_a_parser_yields_to_the_service_by_one_scale_for_both() -> None:
    """Of processes in different sessions Linux takes no niceness into account."""
    seen = []

    class Looking(Leash):
        def hold(self, child: subprocess.Popen[bytes]) -> None:
            seen.append((os.getsid(child.pid), os.getpriority(os.PRIO_PROCESS, child.pid)))
            assert os.getpgid(child.pid) != os.getpgid(0), "a terminal's signals are not for it"
            super().hold(child)

    order = {"task": "read", "media_type": "text/plain", "filename": "a.txt"}
    with tempfile.TemporaryFile() as file:
        file.write(b"It rained.")
        file.seek(0)
        assert parse_file(file, order, MEMORY, 30, Looking()).extraction is not None
    ((session, niceness),) = seen
    assert session == os.getsid(0) and niceness > os.getpriority(os.PRIO_PROCESS, 0)


def test_a_parser_that_hangs_is_killed() -> None:
    reading, writing = os.pipe()  # a file that never ends and never says anything
    started = time.monotonic()
    with os.fdopen(reading, "rb") as file, pytest.raises(ParseFailed) as failed:
        parse_file(
            file, {"task": "read", "media_type": formats.TXT, "filename": "a.txt"}, MEMORY, 1.5
        )
    os.close(writing)
    assert failed.value.reason == "timed_out"
    assert time.monotonic() - started < 120


class Endless(BlobStore):
    """A store with one file, which never ends and never says anything."""

    def copy(self, owner: str, blob: Blob) -> BinaryIO:
        return os.fdopen(os.dup(self.reading), "rb")


async def until(done: Callable[[], bool]) -> None:
    """Raises TimeoutError long before a parser would end by itself."""
    async with asyncio.timeout(120):
        while not done():
            await asyncio.sleep(0.01)


def test_a_parser_whose_caller_is_cancelled_is_killed(tmp_path: Path) -> None:
    store = Endless(tmp_path)
    store.reading, writing = os.pipe()
    document = StoredDocument(store, "ada", Blob("", "", 0, b""), formats.TXT, "a.txt", MEMORY, 600)

    async def cancelled() -> None:
        parsing = asyncio.create_task(document.parse("read"))
        await until(lambda: bool(parsers(os.getpid())))
        parsing.cancel()
        await until(lambda: parsing.cancelled() and not parsers(os.getpid()))

    asyncio.run(cancelled())
    os.close(store.reading)
    os.close(writing)


def test_a_parser_that_eats_memory_is_stopped() -> None:
    content = b"[" + b",".join(b'{"number": %d}' % n for n in range(400_000)) + b"]"
    with opened(content) as file, pytest.raises(ParseFailed) as failed:
        parse_file(
            file,
            {"task": "read", "media_type": formats.JSON, "filename": "a.json"},
            160 * 1024**2,
            30,
        )
    assert failed.value.reason in ("too_large_to_parse", "parser_crashed")


def test_an_archive_is_what_is_in_it_not_what_it_is_called() -> None:
    with opened(corpus.xlsx()) as file:
        answer = parse_file(
            file, {"task": "read", "media_type": formats.DOCX, "filename": "a.docx"}, MEMORY, 30
        )
    assert answer.extraction.media_type == formats.XLSX


def test_a_recording_that_breaks_off_is_heard_as_far_as_it_goes() -> None:
    whole = corpus.recording(
        np.r_[sounds.at(sounds.speech("The meeting begins at nine on Thursday."), 2_500)], "mp3"
    )
    with opened(whole[: len(whole) // 2]) as file:
        answer = parse_file(
            file, {"task": "hear", "media_type": formats.MP3, "filename": "a.mp3"}, MEMORY, 30
        )
    assert 0 < answer.value["duration_seconds"] < 2 and answer.value["speech"]


SNIFFED = {
    "report.docx": (corpus.docx, formats.DOCX), "named wrongly.txt": (corpus.docx, formats.DOCX),
    "deck.pptx": (corpus.pptx, formats.PPTX), "sheet.bin": (corpus.xlsx, formats.XLSX),
    "a.pdf": (lambda: corpus.pdf([[]]), formats.PDF), "a.png": (corpus.picture, formats.PNG),
    "a.jpg": (lambda: corpus.picture("x", "JPEG"), formats.JPEG),
    "a.webp": (lambda: corpus.picture("x", "WEBP"), formats.WEBP),
    "page": (corpus.HTML.encode, formats.HTML), "a.md": (corpus.MARKDOWN.encode, formats.MARKDOWN),
    "a.csv": (corpus.CSV.encode, formats.CSV), "data": (corpus.JSON.encode, formats.JSON),
    "letter": (corpus.eml, formats.EML), "subtitles": (corpus.SRT.encode, formats.SRT),
    "captions.txt": (corpus.VTT.encode, formats.VTT),
    "note": (lambda: "Grüße, 世界".encode(), formats.TXT),
    "wide.txt": (lambda: "Grüße".encode("utf-16"), formats.TXT),
    "archive.zip": (lambda: corpus.zip_of({"a": b"b"}), None),
    "program.txt": (lambda: b"\x7fELF\x02\x01\x01\x00\x00\x00\x00", None),
    "old.doc": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None),
    "a.gif": (lambda: b"GIF89a\x01\x00\x01\x00\x80", None),
    "letter.rtf": (lambda: rb"{\rtf1\ansi Dear Ada}", None),
    "tags.txt": (lambda: b"ID3 tags are fun to read.", formats.TXT),
    "tagged": (lambda: b"ID3\x04\x00\x00\x00\x00\x02\x01", formats.MP3),
    "captioning.txt": (lambda: b"WEBVTT is a format I like.\n\nIt is text.", formats.TXT),
    "begun.vtt": (lambda: b"WEBVTT - no cues yet\n", formats.VTT),
    "on_pdf.md": (lambda: b"# The header\n\nA file begins with `%PDF-1.7`.", formats.MARKDOWN),
    "on_pdf": (lambda: b"Every PDF has %PDF-1.7 in its first line.", formats.TXT),
    "late.pdf": (lambda: b"HTTP/1.1 200 OK\n\n%PDF-1.4\n1 0 obj", formats.PDF),
    "late": (lambda: b"\x00\x01\x02\n%PDF-1.4\n1 0 obj", formats.PDF),
    "spaced.txt": (lambda: b"\n\n%PDF-1.4\n1 0 obj", formats.PDF),
    "settings.ini": (lambda: b"[server]\nport = 80\n", formats.TXT),
    "settings.toml": (lambda: b"[[server]]\nport = 80\n", formats.TXT),
    "template": (lambda: b"{name} lives in {place}.", formats.TXT),
    "list": (lambda: b' [ [], {"a": 1}]', formats.JSON),
    "numbers": (lambda: b"[\n[-1, 2]]", formats.JSON),
    "lines.jsonl": (lambda: b'{"a": 1}\n{"a": 2}\n', formats.JSON),
    "deep": (lambda: b"[ " * 30_000, formats.TXT),
    "noise.txt": (lambda: bytes(range(256)) * 10, None),
}  # fmt: skip


@pytest.mark.parametrize("name", SNIFFED)
def test_a_file_is_known_by_its_content(name: str) -> None:
    make, expected = SNIFFED[name]
    assert formats.media_type_of(make()[:65_536], name) == expected


@pytest.mark.parametrize("extension", ["wav", *corpus.CODECS])
def test_a_recording_is_known_by_its_content(extension: str) -> None:
    kinds = {"wav": formats.WAV, "mp3": formats.MP3, "flac": formats.FLAC, "ogg": formats.OGG,
             "m4a": formats.M4A, "mp4": formats.MP4,
             "mov": formats.MOV, "webm": formats.WEBM}  # fmt: skip
    assert (
        formats.media_type_of(corpus.recording(sounds.tone(0.3, 440), extension)[:65_536], "x")
        == kinds[extension]
    )


@pytest.mark.parametrize("extension", ["wav", *corpus.CODECS])
def test_a_recording_is_heard_and_cut_in_every_format(extension: str) -> None:
    said = sounds.at(sounds.speech("The meeting begins at nine on Thursday."), 2_500)
    samples = np.r_[sounds.silence(4), said, sounds.silence(1)]
    file = io.BytesIO(corpus.recording(samples, extension))
    heard = audio.hear(file)
    (stretch,) = heard.speech
    assert heard.duration_seconds == pytest.approx(len(samples) / sounds.RATE, abs=0.1)
    assert stretch.begins == pytest.approx(4, abs=0.4) and stretch.ends == pytest.approx(
        4 + len(said) / sounds.RATE, abs=0.5
    )
    file.seek(0)
    with wave.open(io.BytesIO(audio.cut(file, stretch.begins, stretch.ends))) as piece:
        cut = np.frombuffer(piece.readframes(piece.getnframes()), np.int16).astype(float)
    assert len(cut) / sounds.RATE == pytest.approx(stretch.ends - stretch.begins, abs=0.1)
    expected = samples[int(stretch.begins * sounds.RATE) :][: len(cut)].astype(float)
    lag = np.argmax(np.correlate(cut[:32_000], expected[:32_000], "full")) - 31_999
    assert abs(lag) < 0.06 * sounds.RATE, "the piece begins where it was asked to"


def seconds_of_speech(samples: np.ndarray) -> float:
    finder = SpeechFinder()
    for start in range(0, len(samples), 3_333):
        finder.feed(samples[start : start + 3_333])
    return sum(stretch.ends - stretch.begins for stretch in finder.stretches())


@pytest.mark.parametrize("what", sounds.NOT_SPEECH)
def test_noise_and_tones_are_no_speech(what: str) -> None:
    assert seconds_of_speech(sounds.NOT_SPEECH[what]()) == 0


@pytest.mark.parametrize("voice", ["en", "de", "cmn", "hi"])
def test_speech_is_speech_where_it_is(voice: str) -> None:
    texts = {"en": "Please call me back before noon.", "de": ("Bitte rufen Sie vor "
        "Mittag zurück."), "cmn": "请在中午之前给我回电话。",
             "hi": "कृपया दोपहर से पहले मुझे वापस कॉल करें।"}  # fmt: skip
    said = sounds.at(sounds.speech(texts[voice], voice), 2_500)
    finder = SpeechFinder()
    finder.feed(np.r_[sounds.noise(3, 1) // 100, said, sounds.silence(3)])
    (stretch,) = finder.stretches()
    assert stretch.begins == pytest.approx(3.0, abs=0.4) and stretch.ends == pytest.approx(
        3 + len(said) / sounds.RATE, abs=0.6
    )


def test_comments_before_a_page_do_not_hide_it() -> None:
    for head in (
        b"<html>",
        b" <!-- a -->\n<!DOCTYPE  html>",
        b"<!----><!-- < --> <Body>",
        b"\xef\xbb\xbf<!-->--><head\n",
    ):
        assert formats.media_type_of(head, "a.txt") == formats.HTML, head
    for head in (
        b"<!---->" * 9_000 + b"x",
        b"<!-- <html>",
        b"<!-- --> x <html>",
        b"<htmls>",
        b"<!---->",
        b"x<html>",
    ):
        assert formats.media_type_of(head, "a.txt") == formats.TXT, head


@given(some.text(some.sampled_from("a# \t-"), max_size=14).map("#".__add__))
def test_a_heading_of_markdown_ends_where_it_always_did(line: str) -> None:
    once = re.fullmatch(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*", line)
    blocks = plain.read_markdown(io.BytesIO(f"{line}\n\nText.".encode()), "a.md")
    found = [
        (block.heading, blocks.text[block.start : block.end])
        for block in blocks.blocks
        if block.heading
    ]
    assert found == ([(len(once[1]), once[2].strip())] if once and once[2].strip() else [])
