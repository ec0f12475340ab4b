"""Files for agents: the six commands of the common agent memory tool, over memories (beta).

Owns `POST /v1/memory-tool` and the texts it answers with, which are the ones agents know from that
tool. A file is a memory: its text the content, its path the `source_reference`, `source_type`
"memory_file". So searches find it, a long one in passages, with its path in `metadata.path`, and it
is versioned, exported, imported and erased like any other memory; deleting or changing the memory
deletes or changes the file. There is no table of files: a path is looked up in the bitmaps of
memories, where each file is marked with every directory it is in. A directory is there as long as a
file is in it; /memories always is.

An account has one tree for each combination of collection, user_id and agent_id that a request
names. Which of the two ids a tree is apart by stands in `source`: "memory-tool",
"memory-tool/user_id", "memory-tool/agent_id", "memory-tool/user_id/agent_id".

Choices:
- Where a command cannot be carried out, the answer is an error of the API, and its message what the
  agent is to be told.
- A file holds what a memory may hold: 1 to 100,000 characters, not all of them white space.
- `insert` ends the file with a line break only if it did before.
- A directory's size is that of all files in it, hidden ones included; hidden ones are left out of
  its listing.
- A rename makes a new version of each memory it moves; a directory with all files in it moves in
  one transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field, StrictBool, StrictInt, model_validator
from pyroaring import BitMap

from plugins.collections import CollectionId, require_collection
from plugins.memories import (
    CONTENT_CHARS_MAX,
    EXAMPLE,
    MEMORY_FIELDS,
    Content,
    Draft,
    Indexed,
    MemoryRow,
    ScopeName,
    Status,
    delete_memories,
    hide_all,
    index_in_time,
    memory_reply,
    readable,
    rows_at,
    store_memories,
    update_memory,
    wait_seconds,
)
from plugins.memory_tools.limits import ECHOED_CHARS_MAX, LINES_NAMED_MAX, MEMORY_FILES_MAX
from plugins.memory_tools.paths import ROOT, directories_of, name_of, read_path
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Call, Idempotency, Reply, View, Write
from runtime.errors import BadRequest, Conflict, NotFound, ValidationFailed
from runtime.inference import Models

SOURCE = "memory-tool"  # what the `source` of a memory that is a file begins with
FILE = "memory_file"  # the source_type of its memory
NEEDED = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
SNIPPET_LINES = 2  # around the line that changed
LEVELS_LISTED = 2
_UNLISTED = "node_modules"
_OF_CHANGES = ("processing_status", "searchable", "status_url", "outbox_event_id")
Given = TypeVar("Given")


class MemoryCommand(Body):
    """One command on the tree of files that user_id, agent_id and collection_id name."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [*names], "properties": {"command": {"const": command}}}
                for command, names in NEEDED.items()
            ]
        }
    )

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"] = Field(
        description="What to do."
    )
    path: str | None = Field(
        default=None,
        description="A file or directory, from `/memories` on. All commands but `rename` need it.",
    )
    view_range: list[StrictInt] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="`view`: first and last line to show, from 1; -1 is the file's end.",
    )
    file_text: Content | None = Field(default=None, description="`create`: the new file's text.")
    old_str: str | None = Field(
        default=None,
        min_length=1,
        max_length=CONTENT_CHARS_MAX,
        description="`str_replace`: occurs exactly once.",
    )
    new_str: str = Field(
        default="", max_length=CONTENT_CHARS_MAX, description="`str_replace`: stands in its place."
    )
    insert_line: StrictInt | None = Field(
        default=None, description="`insert`: the line to insert after; 0 is the file's beginning."
    )
    insert_text: str | None = Field(
        default=None, max_length=CONTENT_CHARS_MAX, description="`insert`: the lines to insert."
    )
    old_path: str | None = Field(
        default=None, description="`rename`: what to move, with everything in it."
    )
    new_path: str | None = Field(
        default=None, description="`rename`: where to; there must be nothing yet."
    )
    collection_id: CollectionId | None = Field(
        default=None, description="The collection the tree is in; the default one when absent."
    )
    user_id: ScopeName | None = Field(default=None, description="The tree of this end user.")
    agent_id: ScopeName | None = Field(default=None, description="The tree of this agent.")
    wait_for_index: StrictBool = Field(
        default=False, description="Wait up to 30 seconds for a changed file to be searchable."
    )

    @model_validator(mode="after")
    def _complete(self) -> MemoryCommand:
        for name in NEEDED[self.command]:
            if getattr(self, name) is None:
                raise ValidationFailed.at(("body", name), "is required", "missing")
        for name in ("path", "old_path", "new_path"):
            path = getattr(self, name)
            if path is not None:
                try:
                    setattr(self, name, read_path(path))
                except ValueError as wrong:
                    raise ValidationFailed.at(("body", name), str(wrong)) from None
        return self


def given(field: Given | None) -> Given:
    """A field that is there: no command is valid without what it needs, and no memory is a file
    without its path.
    """
    if field is None:
        raise LookupError("a command or a file lacks a field that each has")
    return field


class MemoryOutput(View):
    output: str = Field(description="What to tell the agent.")
    path: str = Field(description="The file or directory, where it is now.")
    memory_id: str | None = Field(
        description="The memory that is the file; null for directories and what was deleted."
    )
    version: int | None = Field(description="That memory's version.")
    processing_status: Status | None = Field(
        description="Of a file that was changed: `completed` exactly when it is searchable."
    )
    searchable: bool | None = Field(
        description="Of a file that was changed: whether searches find its text."
    )
    status_url: str | None = Field(description="Of a file that was changed: where to ask again.")
    outbox_event_id: str | None = Field(
        description="Of a file that was changed: the event of its current version."
    )


class Tree:
    """The files of one tree, as the ordinals of their memories."""

    def __init__(self, ctx: ReadContext, body: MemoryCommand):
        self.collection = require_collection(ctx, body.collection_id)
        self.apart = {
            name: value
            for name in ("user_id", "agent_id")
            if (value := getattr(body, name)) is not None
        }
        self.source = "/".join((SOURCE, *self.apart))
        self._ctx, self._fields = ctx, ctx.index(MEMORY_FIELDS)
        self._files = readable(ctx) & self._fields.of("collection", self.collection.number)
        for name, value in {
            "source": self.source,
            "source_type": FILE,
            **self.apart,
        }.items():
            self._files &= self._fields.of(name, value)

    def __len__(self) -> int:
        return len(self._files)

    def at(self, path: str) -> BitMap:
        """The file of this name. Its memory was stored here; others that claim the same place in
        the tree are at it, too.
        """
        return self._files & self._fields.of("source_reference", path)

    def below(self, path: str) -> BitMap:
        """All files in a directory and in those in it."""
        return self._files & self._fields.of("source_directory", path)

    def rows(self, ordinals: BitMap) -> list[MemoryRow]:
        return rows_at(self._ctx, ordinals)

    def file(self, path: str) -> MemoryRow:
        """The file to change. Raises NotFound, or BadRequest for a directory."""
        found = self.at(path)
        if found:
            return rows_at(self._ctx, [found.max()])[0]
        if path == ROOT or self.below(path):
            raise BadRequest(f"The path {path} is not a file.", param="path")
        raise _missing(path)

    def check_free(self, path: str, message: str) -> None:
        """Raise Conflict, with this message where something is there already."""
        if path == ROOT or self.at(path) or self.below(path):
            raise Conflict(message)
        for directory in directories_of(path):
            if self.at(directory):
                raise Conflict(f"The path {directory} is a file, so nothing can be below it.")


def index_entries(row: MemoryRow) -> list[tuple[str, str]]:
    """What a file is found by beside what every memory is: each directory it is in."""
    if row.source is None or row.source_reference is None:
        return []
    if row.source.partition("/")[0] != SOURCE:
        return []
    return [("source_directory", directory) for directory in directories_of(row.source_reference)]


# --- reading --------------------------------------------------------------------------------------


def view(tree: Tree, body: MemoryCommand) -> dict[str, Any]:
    path = given(body.path)
    below = tree.below(path)
    if path == ROOT or (below and not tree.at(path)):
        return _tool_reply(listing(path, tree.rows(below)), path)
    if not tree.at(path):
        raise _missing(path)
    row = tree.file(path)
    lines = row.content.split("\n")
    first, last = body.view_range or (1, -1)
    if not 1 <= first <= len(lines) or (last != -1 and last < first):
        problem = (
            "Invalid `view_range` parameter. It should be within the range of lines of the file: "
            f"[1, {len(lines)}]"
        )
        raise ValidationFailed.at(("body", "view_range"), problem)
    shown = lines[first - 1 : None if last == -1 else last]
    return _tool_reply(
        f"Here's the content of {path} with line numbers:\n{numbered(shown, first)}",
        path,
        row,
    )


def listing(directory: str, rows: Sequence[MemoryRow]) -> str:
    """Two levels of a directory, a line each: size, tab, path; directories end with a slash. rows:
    all files below it.
    """
    sizes: dict[tuple[str, ...], int] = defaultdict(int)
    for row in rows:
        names = given(row.source_reference).removeprefix(directory + "/").split("/")
        size = len(row.content.encode())
        sizes[()] += size
        shown = names[:LEVELS_LISTED]
        if not any(name.startswith(".") or name == _UNLISTED for name in shown):
            for level in range(1, len(shown) + 1):
                sizes[
                    (*shown[: level - 1], names[level - 1] + ("/" if level < len(names) else ""))
                ] += size
    head = (
        f"Here're the files and directories up to {LEVELS_LISTED} levels deep in {directory}, "
        f"excluding hidden items and {_UNLISTED}:"
    )
    top = f"{size_text(sizes.pop((), 0))}\t{directory}"
    in_order = sorted(sizes, key=lambda path: [name.rstrip("/") for name in path])
    lines = (f"{size_text(sizes[path])}\t{directory}/{'/'.join(path)}" for path in in_order)
    return "\n".join((head, top, *lines))


def numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def size_text(size: int) -> str:
    """Bytes as people write them: 512B, 1.5K, 2M."""
    power = min(max(size, 1).bit_length() - 1, 20) // 10
    return f"{size / 1024**power:.1f}".removesuffix(".0") + "BKM"[power]


# --- changing -------------------------------------------------------------------------------------


def replaced(content: str, body: MemoryCommand) -> tuple[str, str]:
    """`str_replace`: (the new content, what to tell). Raises Conflict unless old_str occurs exactly
    once.
    """
    old = given(body.old_str)
    quoted = _short(old)
    places: list[int] = []
    at = content.find(old)
    while at >= 0 and len(places) < LINES_NAMED_MAX:
        places.append(content.count("\n", 0, at) + 1)
        at = content.find(old, at + 1)
    if not places:
        raise Conflict(
            f"No replacement was performed, old_str `{quoted}` did not appear verbatim in "
            f"{body.path}.",
            param="old_str",
        )
    if len(places) > 1:
        problem = (
            f"No replacement was performed. Multiple occurrences of old_str `{quoted}` in lines: "
            f"{', '.join(map(str, places))}."
        )
        raise Conflict(f"{problem} Please ensure it is unique", param="old_str")
    edited = content.replace(old, body.new_str)
    first = max(1, places[0] - SNIPPET_LINES)
    snippet = numbered(edited.split("\n")[first - 1 : places[0] + SNIPPET_LINES], first)
    return (
        edited,
        "The memory file has been edited. Here is the snippet showing the change (with line "
        f"numbers):\n{snippet}",
    )


def inserted(content: str, body: MemoryCommand) -> tuple[str, str]:
    """`insert`: (the new content, what to tell). Raises ValidationFailed for a line that is not
    there.
    """
    place, text = given(body.insert_line), given(body.insert_text)
    lines = content.split("\n")
    count = len(lines) - (lines[-1] == "")
    if not 0 <= place <= count:
        problem = (
            "Invalid `insert_line` parameter. It should be within the range of lines of the file: "
            f"[0, {count}]"
        )
        raise ValidationFailed.at(("body", "insert_line"), problem)
    lines.insert(place, text.removesuffix("\n"))
    return "\n".join(lines), f"The file {body.path} has been edited."


EDITS: dict[str, tuple[Callable[[str, MemoryCommand], tuple[str, str]], str]] = {
    "str_replace": (replaced, "new_str"),
    "insert": (inserted, "insert_text"),
}


def edited(row: MemoryRow, body: MemoryCommand) -> tuple[str, str]:
    """(the file's new content, what to tell)."""
    change, blamed = EDITS[body.command]
    content, output = change(row.content, body)
    if not content.strip():
        raise ValidationFailed.at(("body", blamed), "would leave the file empty; delete it instead")
    if len(content.strip()) > CONTENT_CHARS_MAX:
        raise ValidationFailed.at(
            ("body", blamed),
            f"would make the file longer than {CONTENT_CHARS_MAX:,} characters; begin another one",
        )
    return content, output


def edit(ctx: WriteContext, tree: Tree, body: MemoryCommand) -> Reply:
    row = tree.file(given(body.path))
    content, output = edited(row, body)
    if content != row.content:
        row = update_memory(
            ctx, row, {"content": content}, _index_of(ctx, content), reason=body.command
        ).rows[0]
    return _reply(output, row, 200)


def check_new(tree: Tree, path: str) -> None:
    tree.check_free(path, f"File {path} already exists")
    if len(tree) >= MEMORY_FILES_MAX:
        raise Conflict(
            f"There are {MEMORY_FILES_MAX:,} files, the most there may be. Delete or merge some of "
            "them first."
        )


def create(ctx: WriteContext, tree: Tree, body: MemoryCommand) -> Reply:
    path, text = given(body.path), given(body.file_text)
    check_new(tree, path)
    fields = {
        "source": tree.source,
        "source_type": FILE,
        **tree.apart,
        **_placed(path, {}),
    }
    draft = Draft(text, tree.collection, fields, _index_of(ctx, text))
    row = store_memories(ctx, [draft], reason=body.command).rows[0]
    return _reply(f"File created successfully at: {path}", row, 201)


def delete(ctx: WriteContext, tree: Tree, body: MemoryCommand) -> dict[str, Any]:
    path = given(body.path)
    if path == ROOT:
        raise BadRequest(f"Cannot delete the {ROOT} directory itself", param="path")
    named = tree.at(path)
    if named:
        delete_memories(ctx, tree.rows(named))
    elif below := tree.below(path):
        hide_all(ctx, below)
    else:
        raise NotFound(f"The path {path} does not exist", param="path")
    return _tool_reply(f"Successfully deleted {path}", path)


def rename(ctx: WriteContext, tree: Tree, body: MemoryCommand) -> Reply | dict[str, Any]:
    old, new = given(body.old_path), given(body.new_path)
    if old == ROOT:
        raise BadRequest(f"Cannot rename the {ROOT} directory itself", param="old_path")
    named = tree.at(old)
    rows = tree.rows(named or tree.below(old))
    if not rows:
        raise NotFound(f"The path {old} does not exist", param="old_path")
    if new.startswith(old + "/"):
        raise BadRequest(f"Cannot move {old} into itself", param="new_path")
    tree.check_free(new, f"The destination {new} already exists")
    moved = [
        _moved(ctx, row, new + given(row.source_reference).removeprefix(old), body) for row in rows
    ]
    output = f"Successfully renamed {old} to {new}"
    return _reply(output, moved[-1], 200) if named else _tool_reply(output, new)


def _moved(ctx: WriteContext, row: MemoryRow, path: str, body: MemoryCommand) -> MemoryRow:
    try:
        place = _placed(read_path(path), row.metadata)
    except ValueError as wrong:
        raise ValidationFailed.at(
            ("body", "new_path"), f"would give a file a path that is not allowed: it {wrong}"
        ) from None
    return update_memory(ctx, row, place, reason=body.command).rows[0]


def _placed(path: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The fields of a memory that say where its file is."""
    return {
        "source_reference": path,
        "title": name_of(path),
        "metadata": {**metadata, "path": path},
    }


CHANGES: dict[str, Callable[[WriteContext, Tree, MemoryCommand], Reply | dict[str, Any]]] = {
    "create": create,
    "str_replace": edit,
    "insert": edit,
    "delete": delete,
    "rename": rename,
}

# --- the steps of the operation -------------------------------------------------------------------

Loaded = (
    dict[str, Any] | tuple[str, float] | None
)  # what `view` answers; or a text to index and the seconds it may take
Prepared = dict[str, Any] | tuple[str, Indexed | None] | None


def load(ctx: ReadContext, body: MemoryCommand) -> Loaded:
    """A view is read here, before the writer's turn. For a change, the text that will have to be
    found, as things stand.
    """
    tree = Tree(ctx, body)
    if body.command == "view":
        return view(tree, body)
    if body.command == "create":
        check_new(tree, given(body.path))
        return given(body.file_text), wait_seconds(ctx, body.wait_for_index)
    if body.command in EDITS:
        return edited(tree.file(given(body.path)), body)[0], wait_seconds(ctx, body.wait_for_index)
    return None


async def prepare(call: Call, loaded: Loaded, models: Models) -> Prepared:
    if not isinstance(loaded, tuple):
        return loaded
    text, seconds = loaded
    indexed = await index_in_time([(None, text)], seconds, models)
    return text, indexed[0] if indexed else None


def execute(ctx: WriteContext, body: MemoryCommand) -> Reply | dict[str, Any]:
    return (
        ctx.prepared
        if body.command == "view"
        else CHANGES[body.command](ctx, Tree(ctx, body), body)
    )


def _index_of(ctx: WriteContext, content: str) -> Indexed | None:
    """The index that was prepared, unless the file changed meanwhile; a job makes the right one
    then.
    """
    text, indexed = ctx.prepared
    return indexed if text == content else None


def _tool_reply(
    output: str, path: str, row: MemoryRow | None = None, changed: dict[str, Any] | None = None
) -> dict[str, Any]:
    file = (
        {"memory_id": None, "version": None}
        if row is None
        else {"memory_id": row.id, "version": row.version}
    )
    return {
        "output": output,
        "path": path,
        **file,
        **{name: (changed or {}).get(name) for name in _OF_CHANGES},
    }


def _reply(output: str, row: MemoryRow, ready: int) -> Reply:
    """The answer to a change of one file: `ready`, or 202 while its text is being indexed."""
    reply = memory_reply(row, ready)
    reply.body = _tool_reply(output, given(row.source_reference), row, changed=reply.body)
    return reply


def _missing(path: str) -> NotFound:
    return NotFound(f"The path {path} does not exist. Please provide a valid path.", param="path")


def _short(text: str) -> str:
    return text if len(text) <= ECHOED_CHARS_MAX else text[:ECHOED_CHARS_MAX] + "…"


_EXAMPLE = {
    "command": "create",
    "path": "/memories/people/ada.md",
    "file_text": "Ada moved to Lisbon in March.\n",
}

OPERATIONS = (
    Write(
        name="memory_files.execute",
        method="POST",
        path="/v1/memory-tool",
        load=load,
        prepare=prepare,
        handler=execute,
        body=MemoryCommand,
        response=MemoryOutput,
        statuses=(200, 201, 202),
        scope="read",
        scope_of=lambda body: "read" if body.command == "view" else "write",
        idempotency=Idempotency.CACHED,
        credits=lambda body: 0 if body.command == "view" else 1,
        stability="beta",
        summary="Carry out a command of an agent's memory tool",
        description="Six commands over a tree of files from `/memories` on; each file is a "
        "memory, so "
        "searches find it. `output`, or the "
        "message of an error, is what to tell the agent. Everything but `view` needs the scope "
        "`write`, and costs 1 credit.",
        example=_EXAMPLE,
        example_reply={
            "output": f"File created successfully at: {_EXAMPLE['path']}",
            "path": _EXAMPLE["path"],
            "memory_id": EXAMPLE["id"],
            "version": 1,
            **{name: EXAMPLE[name] for name in _OF_CHANGES},
        },
    ),
)
