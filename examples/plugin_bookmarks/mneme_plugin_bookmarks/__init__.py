"""Bookmarks: an address with a label, which may say which memory it is about.

Owns the bookmarks of an account. Invariant: a bookmark's id, its entries in the bitmap index and
its row change in one transaction.

    bookmarks.rows   (ordinal,) -> BookmarkRow
    bookmarks.ids    (id,)      -> ordinal, 4 bytes
"""

from __future__ import annotations

import re

import msgspec
from pydantic import Field

from mneme import (
    BitmapIndex,
    Body,
    Conflict,
    Event,
    Idempotency,
    Job,
    NotFound,
    Page,
    PageQuery,
    Plugin,
    Read,
    Retriever,
    Section,
    Table,
    Tool,
    View,
    Write,
    envelope,
    newest_first,
)
from plugins.memories import get_row


class BookmarkRow(msgspec.Struct):
    id: str
    url: str
    label: str
    memory_ordinal: int | None = None
    checked: bool = False


ROWS = Table("bookmarks.rows", key=("ordinal",), row=BookmarkRow, doc="bookmarks")
IDS = Table("bookmarks.ids", key=("id",), row=bytes, doc="bookmark id to ordinal")
FIELDS = BitmapIndex("bookmarks.fields", fields=("live", "label"))


class BookmarkSettings(Section, frozen=True):
    per_account_max: int = Field(
        default=1000, ge=1, description="Bookmarks that an account may have."
    )
    per_minute: int = Field(
        default=60, ge=1, description="Endpoint cap of saving bookmarks, per minute."
    )
    weight: float = Field(
        default=0.4, description="What a bookmark with a word of the query counts in a search."
    )


class NewBookmark(Body):
    url: str = Field(max_length=2000, description="The address.")
    label: str = Field("unsorted", max_length=64, description="What to find it by.")
    memory_id: str | None = Field(None, max_length=64, description="The memory it is about.")


class Bookmark(View):
    id: str
    url: str
    label: str
    checked: bool


class BookmarkFilter(PageQuery):
    label: str | None = Field(None, description="Only bookmarks with this label.")


SAVED = Event("bookmark.saved", Bookmark)


def view(row):
    return {"id": row.id, "url": row.url, "label": row.label, "checked": row.checked}


def ordinal_of(ctx):
    number = ctx[IDS].get(ctx.check_id("bmk", ctx.path["id"]))
    if number is None:
        raise NotFound("There is no bookmark with this id.")
    return int.from_bytes(number, "big")


def create(ctx, body):
    if len(ctx.index(FIELDS).of("live", 1)) >= BookmarkSettings.of(ctx.settings).per_account_max:
        raise Conflict("The account has as many bookmarks as it may; delete one.")
    memory = None if body.memory_id is None else get_row(ctx, body.memory_id).ordinal
    ordinal = ctx.next_ordinal("bookmarks")
    row = BookmarkRow(ctx.new_id("bmk"), body.url, body.label, memory)
    ctx[ROWS].put((ordinal,), row)
    ctx[IDS].put((row.id,), ordinal.to_bytes(4, "big"))
    ctx.index(FIELDS).add(ordinal, "live", 1)
    ctx.index(FIELDS).add(ordinal, "label", row.label)
    ctx.emit(SAVED, view(row), row.id)
    ctx.enqueue("bookmarks.check", {"ordinal": ordinal})
    return view(row)


def read_list(ctx, body):
    """Newest first; the filter is a bitmap, so a page costs the same at any depth."""
    fields, label = ctx.index(FIELDS), ctx.query.label
    matching = fields.of("live", 1) if label is None else fields.of("label", label)
    page, following = newest_first(ctx, matching)
    return envelope(
        ctx, [view(ctx[ROWS].get(ordinal)) for ordinal in page], following, len(matching)
    )


def delete(ctx, body):
    ordinal = ordinal_of(ctx)
    row = ctx[ROWS].get(ordinal)
    ctx[ROWS].delete(ordinal)
    ctx[IDS].delete(row.id)
    ctx.index(FIELDS).remove(ordinal, "live", 1)
    ctx.index(FIELDS).remove(ordinal, "label", row.label)


def check(ctx, payload):
    """The job: its effect and its completion are one transaction, so it happens once."""
    row = ctx[ROWS].get(payload["ordinal"])
    if row is None:
        return {"checked": None}
    row.checked = True
    ctx[ROWS].put((payload["ordinal"],), row)
    return {"checked": row.id}


def candidates(ctx, query):
    """The memories whose bookmarks have a label of a word of the query: each for certain."""
    found = {}
    for word in {*re.findall(r"\w+", query.lower())}:
        for ordinal in ctx.index(FIELDS).of("label", word):
            row = ctx[ROWS].get(ordinal)
            if row.memory_ordinal is not None:
                found[row.memory_ordinal] = 1.0
    return found


def erase(ctx):
    return {"bookmarks": ctx[ROWS].delete_prefix(), "bookmark_ids": ctx[IDS].delete_prefix()}


def export(ctx):
    for _, row in ctx[ROWS].scan():
        yield "bookmark", view(row)


EXAMPLE = {
    "id": "bmk_01hzx3v6k8c9qj2m4n5p7r8s9t0v1w2x",
    "url": "https://example.org",
    "label": "reading",
    "checked": False,
}

plugin = Plugin(
    name="bookmarks",
    requires=("memories",),
    tables=(ROWS, IDS),
    indexes=(FIELDS,),
    id_prefixes=("bmk",),
    records={"bmk": lambda ctx, bookmark_id: ctx[IDS].has(bookmark_id)},
    events=(SAVED,),
    jobs=(Job("bookmarks.check", check),),
    settings={"bookmarks": BookmarkSettings},
    rates={"bookmarks": lambda settings: BookmarkSettings.of(settings).per_minute},
    retrievers=(
        Retriever(
            "bookmarks.labels",
            candidates,
            in_hybrid=True,
            weight=lambda settings: BookmarkSettings.of(settings).weight,
        ),
    ),
    tools=(Tool("save_bookmark", "bookmarks.create", "Save an address under a label."),),
    figures=lambda ctx: {"bookmarks": len(ctx.index(FIELDS).of("live", 1))},
    erase=erase,
    export=export,
    operations=(
        Write(
            name="bookmarks.create",
            method="POST",
            path="/v1/bookmarks",
            handler=create,
            body=NewBookmark,
            response=Bookmark,
            statuses=(201,),
            scope="write",
            rate="bookmarks",
            credits=1,
            idempotency=Idempotency.CACHED,
            summary="Save a bookmark",
            example={"url": "https://example.org", "label": "reading"},
            example_reply=EXAMPLE,
        ),
        Read(
            name="bookmarks.list",
            method="GET",
            path="/v1/bookmarks",
            handler=read_list,
            query=BookmarkFilter,
            response=Page[Bookmark],
            summary="List bookmarks",
            example_reply={
                "items": [EXAMPLE],
                "next_cursor": None,
                "has_more": False,
                "total_count": 1,
            },
        ),
        Write(
            name="bookmarks.delete",
            method="DELETE",
            path="/v1/bookmarks/{id}",
            handler=delete,
            response=None,
            statuses=(204,),
            scope="write",
            idempotency=Idempotency.CACHED,
            summary="Delete a bookmark",
        ),
    ),
)
