"""What is sent and shown of accounts and their API keys."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from plugins.accounts import limits, tickets
from runtime.api.operation import Body, View, not_blank
from runtime.limits import EMAIL_CHARS_MAX, NAME_CHARS_MAX
from runtime.tenancy import normalise_email
from runtime.timestamps import Timestamp

KeyScope = Literal["read", "write", "admin"]


_EMAIL_SHAPE = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)+")


_SPECIAL = re.compile(r"[()<>,;:\[\]\\\"]")


def _normalised(email: str) -> str:
    address = normalise_email(email)
    if (
        len(address) > EMAIL_CHARS_MAX
        or not address.isprintable()
        or not _EMAIL_SHAPE.fullmatch(address)
    ):
        raise PydanticCustomError("email", "Must be an e-mail address, such as name@example.com.")
    return address


def _is_one_mailbox(address: str) -> str:
    """Refuse what a mail server reads otherwise than it is written: comments, lists, a name before
    the address. One mailbox would have many addresses then.
    """
    if _SPECIAL.search(address):
        raise PydanticCustomError(
            "email", "Must be an e-mail address without brackets, quotes and commas."
        )
    return address


Email = Annotated[
    str,
    Field(
        max_length=EMAIL_CHARS_MAX,
        description="E-mail address; white space around it and letter case do not count.",
        json_schema_extra={"format": "email"},
    ),
    AfterValidator(_normalised),
]
NewEmail = Annotated[Email, AfterValidator(_is_one_mailbox)]  # of an account that is to be
InvitationText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=tickets.TEXT_CHARS_MAX,
        description="An invitation that the operator made, or that was mailed.",
    ),
]
Code = Annotated[
    str,
    Field(
        min_length=1,
        max_length=limits.CODE_CHARS_MAX,
        description="A code of the authenticator app, or a recovery code.",
    ),
]
KeyName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=NAME_CHARS_MAX,
        description="What the key is for, such as `production`.",
    ),
]
KeyScopes = Annotated[
    list[KeyScope],
    Field(
        min_length=1,
        max_length=16,
        description="What the key may do. write implies read, admin implies both.",
    ),
]


class Registration(Body):
    email: NewEmail
    password: str = Field(
        min_length=limits.PASSWORD_CHARS_MIN,
        max_length=limits.PASSWORD_CHARS_MAX,
        repr=False,
        description="The password.",
    )
    full_name: Annotated[str, AfterValidator(not_blank)] = Field(
        min_length=1, max_length=NAME_CHARS_MAX, description="The account holder's name."
    )
    invitation: InvitationText | None = Field(
        default=None, description="Needed where `auth.registration` is `invite` or `mailed`."
    )


class Login(Body):
    email: Email
    password: str = Field(
        min_length=1, max_length=limits.PASSWORD_CHARS_MAX, repr=False, description="The password."
    )
    code: Code | None = Field(
        default=None, description="Needed where the account has a second factor."
    )


class NewApiKey(Body):
    name: KeyName
    scopes: KeyScopes = Field(default=["read", "write"])
    expires_at: Timestamp | None = Field(
        default=None, description="When the key stops working; never, when absent."
    )


class NewApiKeyOf(Body):
    email: Email
    name: KeyName
    scopes: KeyScopes = Field(default=["read", "write"])


class Session(View):
    access_token: str = Field(description="A bearer credential with all scopes.")
    token_type: Literal["bearer"] = Field(
        description="Send it as `Authorization: Bearer <access_token>`."
    )
    expires_in: int = Field(description="Seconds until the token expires.")
    user_id: str = Field(description="The account's id.")
    email: str = Field(description="The normalised e-mail address.")
    full_name: str = Field(description="The account holder's name.")


class Account(View):
    user_id: str = Field(description="The account's id.")
    email: str = Field(description="The normalised e-mail address.")
    full_name: str = Field(description="The account holder's name.")
    tier: str = Field(description="The tier of the account's plan.")
    created_at: str = Field(description="When it was registered (ISO 8601).")
    email_verified: bool = Field(
        description="Whether a mail proved that its holder has the e-mail address."
    )
    second_factor: bool = Field(description="Whether a login needs a code beside the password.")


class KeyUsage(View):
    requests: int = Field(description="Requests made with the key.")
    credits: int = Field(description="Credits they cost.")


class ApiKey(View):
    id: str = Field(description="The key's id; delete it under this.")
    name: str = Field(description="What the key is for.")
    prefix: str = Field(description="The first characters of the key, to recognise it by.")
    scopes: list[KeyScope] = Field(description="What the key may do.")
    created_at: str = Field(description="When it was minted (ISO 8601).")
    expires_at: str | None = Field(description="When it stops working; null: never.")


class MintedApiKey(ApiKey):
    key: str = Field(description="The key itself. It is shown this once.")


class ListedApiKey(ApiKey):
    last_used_at: str | None = Field(description="When it was last used (ISO 8601); null: never.")
    usage: KeyUsage = Field(description="What it was used for.")
