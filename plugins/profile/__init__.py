"""Profiles: what is known of an end user, and talking about it.

A profile has what the caller set (name, time zone, language, bio, facts) and what was derived from
the user's memories, each derived fact with the memories that say it: `static` facts stay (where
somebody lives), `dynamic` ones pass (what they plan), and `sections` has both under ten headings,
what holds apart from what held once. A memory says what smart ingestion found in it, and what else
the rules of rules.py find. A fact that the caller set stands in for
derived ones of the same key. A user never seen has an empty profile.

Storage and derivation are in store.py, the operations in operations.py, the conversation is in
dialectic.py.
"""

from __future__ import annotations

from plugins.profile.limits import PROFILES_KEPT
from plugins.profile.operations import OPERATIONS
from plugins.profile.restoring import RESTORE
from plugins.profile.store import (
    CHECKS,
    TABLES,
    erase,
    export,
    figures,
    forget,
    note,
    refresh,
)
from runtime.api.plugin import Job, Plugin

__all__ = ["plugin"]

plugin = Plugin(
    name="profile",
    id_prefixes=("fct",),
    requires=("answers", "ingestion", "memories", "search"),
    operations=OPERATIONS,
    tables=TABLES,
    subscribe={
        "memory.created": note,
        "memory.updated": note,
        "memory.deleted": forget,
        "internal.claims_changed": note,
    },
    jobs=(Job("profile.refresh", refresh),),
    erase=erase,
    export=export,
    restore=RESTORE,
    figures=figures,
    keeps=(PROFILES_KEPT,),
    checks=CHECKS,
    migrations={("dialogues", 1): lambda row: row},  # earlier turns do not say what they rest on
)
