"""Accounts: registration, login, API keys; an account's export, import and end.

Owns who may call: it turns an e-mail address and a password into an account, and an account into
credentials. It does not know what an account holds; every other plugin finds its tenant in the
context and never asks this one.

An account lives in the slot of its normalised e-mail address, with everything else of its tenant.
So the address is unique because one writer owns its slot, and neither login nor a key look-up needs
a directory. Registration and login are public: their context is bound to the slot, and they find
the tenant there.

operations.py has registration and login, passwords.py and api_keys.py what they need;
invitations.py says who may register; recovery.py trusts what mail.py sends; sessions.py lists and
ends what they began, and changes the password; second_factor.py has codes beside it; transfer.py
takes an account along, and erasure.py ends it. The last two go by what the other plugins
declare.

Passwords are hashed with argon2id, which is slow on purpose. That happens in `prepare`, on a few
threads of its own and outside any transaction; a login with an unknown address costs one hash as
well, so that time does not tell who has an account. What is stored of an API key is its keyed
digest; its text is in the answer that minted it and nowhere else.

Invariant: an API key is listed in `api_keys` exactly when its digest is in `credentials`. Both
change in one transaction, so a deleted key is refused from the next request on.

    tenants, emails, credentials, revoked_tokens, key_usage     see runtime/api/tenants.py
    sessions                                                    see runtime/api/access_tokens.py
    invitations     (ticket id,)-> InvitationRow                 of the slot; see invitations.py
    mail_counts, verified_addresses, second_factor              see mail.py, verified.py and
                                                                second_factor.py
    api_keys        (ordinal,)  -> ApiKeyRow                    in the order they were minted
    api_key_ids     (key id,)   -> ordinal, 4 bytes big endian
"""

from __future__ import annotations

from plugins.accounts import (
    erasure,
    invitations,
    mail,
    recovery,
    second_factor,
    sessions,
    transfer,
)
from plugins.accounts.api_keys import API_KEY_IDS, API_KEYS, CHECKS
from plugins.accounts.operations import OPERATIONS, erase, export
from plugins.accounts.settings import MailSettings
from plugins.accounts.verified import VERIFIED
from runtime.api.plugin import Plugin

__all__ = ["plugin"]

plugin = Plugin(
    name="accounts",
    id_prefixes=("key", "usr"),
    records={"key": lambda ctx, key_id: ctx[API_KEY_IDS].has(key_id)},
    operations=(
        *OPERATIONS,
        *invitations.OPERATIONS,
        *recovery.OPERATIONS,
        *second_factor.OPERATIONS,
        *sessions.OPERATIONS,
        *erasure.OPERATIONS,
        *transfer.OPERATIONS,
    ),
    tables=(
        API_KEYS,
        API_KEY_IDS,
        invitations.INVITATIONS,
        mail.MAIL_COUNTS,
        VERIFIED,
        second_factor.SECOND_FACTOR,
    ),
    events=(recovery.ACCOUNT_TAKEN,),
    jobs=(erasure.ERASE_JOB, mail.MAIL_JOB),
    settings={"mail": MailSettings},
    erase=erase,
    export=export,
    checks=CHECKS,
)
