"""The confined process: one task on the file at standard input, its answer to standard output, then
the end.

    python -m parsing '{"task": "read", "media_type": …, "filename": …,
    "memory_bytes": …, "seconds": …, "confined": …, …}'

Tasks: `read` the text, `hear` where in a recording there is speech, `cut` a piece of it, `show`
pages and pictures. confined: nothing is read where the whole of the confinement cannot be had.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, BinaryIO

import msgspec

from . import formats as f
from .encodings import declared, in_utf8
from .extraction import Failure, ParseFailed, ParserReply
from .sandbox import confine, missing

# media type -> module and function (file, filename) -> Extraction
READERS = {
    f.PDF: "pdf:read", f.DOCX: "office:read", f.PPTX: "office:read", f.XLSX: "office:read",
    f.TXT: "plain:read_text", f.MARKDOWN: "plain:read_markdown", f.CSV: "plain:read_csv",
    f.JSON: "plain:read_json", f.HTML: "markup:read_html", f.EML: "markup:read_mail",
    f.SRT: "subtitles:read_srt", f.VTT: "subtitles:read_vtt",
}  # fmt: skip


def main() -> None:
    order = json.loads(sys.argv[1])
    work = _work(order)
    file = os.fdopen(0, "rb")
    try:
        if order["confined"] and missing():
            raise ParseFailed(
                "parser_not_confined",
                "This server may not read files, since it cannot confine what reads them; its "
                "operator finds out more with `mneme doctor`.",
            )
        confine(order["memory_bytes"], order["seconds"])
        answer = work(file)
    except ParseFailed as failed:
        answer = ParserReply(Failure(failed.reason, failed.message))
    except MemoryError:
        answer = ParserReply(
            Failure("too_large_to_parse", "Parsing this file takes more memory than it may.")
        )
    except RecursionError:
        answer = ParserReply(Failure("damaged", "The file is nested too deeply."))
    except Exception as error:  # whatever a library raises on a broken file
        answer = ParserReply(
            Failure(
                "damaged",
                "The file cannot be read; it is damaged or not what it seems "
                f"({type(error).__name__}).",
            )
        )
    with os.fdopen(1, "wb") as output:
        output.write(msgspec.msgpack.encode(answer))


def _work(order: dict[str, Any]) -> Any:
    """What the task does with the file. Imports what it needs, which the confinement would make
    hard.
    """
    task, media_type = order["task"], order["media_type"]
    if task == "read":
        module, _, function = READERS[media_type].partition(":")
        read = getattr(importlib.import_module(f"{__package__}.{module}"), function)
        named = declared(order.get("charset")) if media_type in f.DECLARABLE else None
        return lambda file: ParserReply(
            extraction=read(file if named is None else in_utf8(file, named), order["filename"])
        )
    if task == "show":
        from . import pictures

        return lambda file: ParserReply(value=pictures.show(file, media_type, order["pages"]))
    from . import audio

    def hear(file: BinaryIO) -> ParserReply:
        if task == "cut":
            return ParserReply(value=audio.cut(file, order["begins"], order["ends"]))
        heard = audio.hear(file)
        return ParserReply(extraction=heard.subtitles, value=heard.outline())

    return hear


if __name__ == "__main__":
    main()
