"""The confined process: one task on the file at standard input, its answer to standard output, then the end.

    python -m plugins.parsing '{"task": "read", "media_type": …, "filename": …, "memory_bytes": …, "seconds": …, …}'

Tasks: `read` the text, `hear` where in a recording there is speech, `cut` a piece of it, `show` pages and pictures.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, BinaryIO

import msgspec

from plugins.parsing import formats as f
from plugins.parsing.confinement import confine
from plugins.parsing.extraction import Answer, Failure, ParseFailed

# media type -> module and function (file, filename) -> Extraction
READERS = {
    f.PDF: "pdf:read", f.DOCX: "word:read", f.PPTX: "slides:read", f.XLSX: "sheets:read",
    f.TXT: "plain:read_text", f.MARKDOWN: "plain:read_markdown", f.CSV: "plain:read_csv", f.JSON: "plain:read_json",
    f.HTML: "markup:read_html", f.EML: "markup:read_mail", f.SRT: "subtitles:read_srt", f.VTT: "subtitles:read_vtt",
}  # fmt: skip


def main() -> None:
    order = json.loads(sys.argv[1])
    work = _work(order)
    file = os.fdopen(0, "rb")
    confine(order["memory_bytes"], order["seconds"])
    try:
        answer = work(file)
    except ParseFailed as failed:
        answer = Answer(Failure(failed.reason, failed.message))
    except MemoryError:
        answer = Answer(Failure("too_large_to_parse", "Parsing this file takes more memory than it may."))
    except RecursionError:
        answer = Answer(Failure("damaged", "The file is nested too deeply."))
    except Exception as error:  # whatever a library raises on a broken file
        answer = Answer(Failure("damaged", f"The file cannot be read; it is damaged or not what it seems ({type(error).__name__})."))
    with os.fdopen(1, "wb") as output:
        output.write(msgspec.msgpack.encode(answer))


def _work(order: dict[str, Any]) -> Any:
    """What the task does with the file. Imports what it needs, which the confinement would make hard."""
    task, media_type = order["task"], order["media_type"]
    if task == "read":
        module, _, function = READERS[media_type].partition(":")
        read = getattr(importlib.import_module(f"plugins.parsing.{module}"), function)
        return lambda file: Answer(extraction=read(file, order["filename"]))
    if task == "show":
        from plugins.parsing import pictures

        return lambda file: Answer(value=pictures.show(file, media_type, order["pages"]))
    from plugins.parsing import sound

    def hear(file: BinaryIO) -> Answer:
        if task == "cut":
            return Answer(value=sound.cut(file, order["begins"], order["ends"]))
        heard = sound.hear(file)
        return Answer(extraction=heard.subtitles, value=heard.outline())

    return hear


if __name__ == "__main__":
    main()
