"""Paths of the memory tool: names in a tree of files that begins at /memories.

A path is a name and is never resolved: nothing is decoded, and nothing steps up. So `..`, also in
disguise (percent-encoded, or in characters that only look like dots and slashes), opens nothing; it
is refused all the same, since whoever sends it means something else than a name. Slashes in a row
count as one, and one at the end is dropped.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate

from plugins.memory_tools.limits import MEMORY_PATH_CHARS_MAX, MEMORY_PATH_DEPTH_MAX
from runtime.limits import NAME_CHARS_MAX

ROOT = "/memories"
_ENCODED = re.compile(r"%(?:00|25|2e|2f|5c)", re.IGNORECASE)
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")  # line breaks among them, which would forge a listing


def read_path(text: str) -> str:
    """The path in its one form. Raises ValueError, which says what a path must be like."""
    if len(text) > MEMORY_PATH_CHARS_MAX:
        raise ValueError(f"must be a path of at most {MEMORY_PATH_CHARS_MAX:,} characters")
    if text != ROOT and not text.startswith(ROOT + "/"):
        raise ValueError(f"must begin with {ROOT}, such as {ROOT}/notes.md")
    if (
        "\\" in text
        or _ENCODED.search(text)
        or any(unicodedata.category(character) in _INVISIBLE for character in text)
    ):
        raise ValueError(
            "must have no backslashes, control characters or percent-encoded dots and slashes"
        )
    names = [name for name in text.split("/") if name]
    for name in names:
        plain = unicodedata.normalize("NFKC", name).strip()
        if plain in ("", ".", "..") or "/" in plain or "\\" in plain:
            raise ValueError("must have names between its slashes, which `.` and `..` are not")
        if len(name) > NAME_CHARS_MAX:
            raise ValueError(f"must have names of at most {NAME_CHARS_MAX} characters")
    if len(names) > MEMORY_PATH_DEPTH_MAX:
        raise ValueError(f"must be at most {MEMORY_PATH_DEPTH_MAX} levels deep")
    return "/" + "/".join(names)


def directories_of(path: str) -> list[str]:
    """Every directory a file is in: "/memories/a/b.md" -> ["/memories", "/memories/a"]."""
    names = path.split("/", MEMORY_PATH_DEPTH_MAX + 1)[1:-1]
    return list(accumulate(names, "{}/{}".format, initial=""))[1:]


def name_of(path: str) -> str:
    """What stands behind the last slash."""
    return path.rpartition("/")[2]
