"""The API of mem0's clients, answered by ours: a client of theirs works with another address and
another key (beta).

A mount claims what comes with `Authorization: Token …` on one of the paths below; a final slash
makes no difference, and what is none of theirs goes on to our own API, which takes `Token` as well.
Each request becomes calls of our operations through the in-process client, as the same caller, and
their answers take the other shape (shapes.py, filters.py).

    GET     /v1/ping                                who the key belongs to
    POST    /v1/memories                            add at once; without `messages` our own create
    POST    /v3/memories/add                        add in the background, polled at
    GET     /v1/event/{id}
    POST    /v1|v2|v3/memories/search
    GET     /v1/memories, POST /v2|v3/memories      list by pages
    GET, PUT, DELETE /v1/memories/{id}, GET …/history
    DELETE  /v1/memories                            by names; none, an empty one or "*" is refused,
                                                    so that nobody deletes everyone
    GET     /v1/entities, DELETE /v1|v2/entities/{kind}/{name}
    PUT, DELETE /v1/batch

Choices where their documentation is silent:
- An event's id names our job where text is ingested, and the memories themselves where they are
  stored as they are.
- The v1 list and the v1 search answer a bare list, as their first version did; the list with
  `page`, and the search with `output_format: "v1.1"`, the envelope.
- Deleting by names needs an admin key, as our own does. A batch of updates changes
  nothing where one of its memories is not there; one that fails later stops it, and says so.
- A success has the status of ours, such as 201 or 202. A refusal has `detail`, the text their
  client shows, beside our own `error`.
"""

from __future__ import annotations

from plugins.mem0.mount import build, claims
from plugins.mem0.settings import Mem0Settings
from runtime.api.mount import Mount
from runtime.api.plugin import Plugin

__all__ = ["plugin"]

plugin = Plugin(
    name="mem0",
    requires=("memories", "search"),
    mounts=(Mount("dropin", claims, build),),  # as its setting and the metrics call it
    settings={"dropin": Mem0Settings},
)
