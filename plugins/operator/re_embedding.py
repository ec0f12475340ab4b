"""The operator's way to have an account's memories embedded by another model
(plugins/memories/spaces.py): one call begins, further ones with its job's id tell how it goes.
"""

from __future__ import annotations

from pydantic import Field

from plugins.memories import Spaces
from runtime.api import tenants
from runtime.api.operation import Body, Idempotency, View, Write
from runtime.api.slot_context import OperatorWriteContext
from runtime.errors import NotFound
from runtime.tenancy import normalise_email, slot_of_email


class ReEmbedding(Body):
    email: str = Field(max_length=320, description="The account's e-mail address.")
    job_id: str | None = Field(
        default=None,
        max_length=64,
        description="What is under way, as it was begun; absent to begin, or to find what is.",
    )


class ReEmbedded(View):
    job_id: str = Field(description="The background job that embeds.")
    status: str = Field(
        description="`running`; `switched` once searches ask the new model; `failed`."
    )
    embedded: int = Field(description="Memories embedded so far.")
    space: str | None = Field(
        description="The embedding space that is searched now; null while there is none."
    )
    error: str | None = Field(description="Why it failed.")


def re_embed(ctx: OperatorWriteContext, body: ReEmbedding) -> ReEmbedded:
    account = tenants.by_email(ctx, normalise_email(body.email))
    if account is None:
        raise NotFound("There is no account with this e-mail address.", param="email")
    theirs = ctx.within(*tenants.identity(ctx.scope.slot, account))
    state = Spaces.re_embedding(theirs, body.job_id or Spaces.begin_re_embedding(theirs))
    return ReEmbedded.model_validate(state._asdict())


OPERATIONS = (
    Write(
        name="internal.re_embed",
        method="POST",
        path="/v1/internal/re-embed",
        handler=re_embed,
        body=ReEmbedding,
        response=ReEmbedded,
        scope="admin",
        internal=True,
        slot_of=lambda body: slot_of_email(body.email),
        idempotency=Idempotency.CACHED,
        summary="Embed an account's memories by the current model",
        example={"email": "ada@example.com"},
        example_reply={
            "job_id": "job_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
            "status": "running",
            "embedded": 0,
            "space": "all-MiniLM-L6-v2/384",
            "error": None,
        },
    ),
)
