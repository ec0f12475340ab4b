"""Chat: OpenAI's chat completions with memory put in.

A flow between a client and the endpoint of `llm.base_url`. It adds what memory knows about the last
thing the user said, as one system message in front of the conversation (plugins/answers/prompt.py),
and passes everything else through: unknown parameters, tools, response formats, and the answer,
event by event.

Promises
- The conversation itself is not touched: nothing stands between an assistant's tool calls and their
  results.
- What is added comes from the caller's own memories, within the scope the request names. Memory
  that fails leaves the chat working, and `memory.degraded` says so; a collection that is not there
  is an error, as everywhere.
- What a request may ask of the endpoint is bounded (bounds.py): the model, one answer, its length,
  the size of the request, media that come along. Everything else passes.
- It costs what its tokens come to, at least the price of the operation, also where its client
  leaves, where the answer breaks off, or where storing the turn fails. Where no answer came it
  costs nothing.
- 200 goes out once the endpoint's first event is there. What fails before is an error of its own
  status; what fails later is a frame `{"error": …}` and then `[DONE]`, never a made-up stop.
- All chunks of a stream carry one id, one created and one model, and the first delta has a role.
- A turn that is to be stored, and that the account has no room for, is refused before the model is
  asked.
- With `store_conversation` the user's last message and the answer become memories of source_type
  `chat`. The answer may repeat what was put in: its metadata lists the memories under
  `recalled_ids`, and it has the tag `recalled`, so that no extraction takes it for something new.
"""

from __future__ import annotations

from plugins.chat.available import MODELS
from plugins.chat.completion import OPERATIONS
from plugins.chat.settings import ChatSettings
from runtime.api.plugin import Plugin
from runtime.extras import LLM

__all__ = ["plugin"]

plugin = Plugin(
    name="chat",
    requires=("answers", "collections", "memories", "search"),
    operations=(*OPERATIONS, MODELS),
    extras=(LLM,),
    settings={"chat": ChatSettings},
)
