"""The models that a chat may name, as OpenAI's clients ask for them before they offer a choice."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from plugins.chat.bounds import ANY_MODEL, OUR_MODEL
from plugins.chat.settings import ChatSettings
from runtime.api.context import ReadContext
from runtime.api.operation import Read, View


class AvailableModel(View):
    id: str = Field(description="What a request names as its `model`.")
    object: Literal["model"] = Field(description="Always `model`.")
    created: int = Field(description="Always 0: when it was made is not known here.")
    owned_by: str = Field(description="`mneme`, or `llm` for those of the endpoint.")


class AvailableModels(View):
    object: Literal["list"] = Field(description="Always `list`.")
    data: list[AvailableModel] = Field(description="The model that is asked by default first.")


def available(ctx: ReadContext, body: None) -> dict[str, Any]:
    llm = ctx.settings.llm
    if llm.base_url is None:
        return {"object": "list", "data": []}
    named = filter(None, (OUR_MODEL, llm.model, *ChatSettings.of(ctx.settings).models_allowed))
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": 0,
                "owned_by": OUR_MODEL if name == OUR_MODEL else "llm",
            }
            for name in dict.fromkeys(named)
            if name != ANY_MODEL
        ],
    }


MODELS = Read(
    name="chat.models",
    method="GET",
    path="/v1/models",
    handler=available,
    response=AvailableModels,
    summary="List the models of chats",
    description=(
        "As OpenAI's clients ask for them: `mneme`, the configured one and what "
        "`chat.models_allowed` names. None without a configured language model."
    ),
    example_reply={
        "object": "list",
        "data": [{"id": "mneme", "object": "model", "created": 0, "owned_by": "mneme"}],
    },
)
