"""Webhooks: where an account wants to be told what happens.

Owns the webhook itself: its target, the events it takes, its signing secret and whether it is
active (operations.py). store.py has what is stored, delivery.py the way of an event to its
receiver, and deliveries.py what became of it.

A target must be one that a request may be made to: an address inside the operator's network is
refused when it is given, and again at each attempt (runtime/outbound.py). A name that has no
address yet is accepted, and judged when there is something to deliver.

The signing secret is in the answer that created or rotated it, and nowhere else. A rotation leaves
the secret before in force for a grace period, in which each request carries both signatures. PUT
replaces the webhook: what is left out of url, events, description and status takes its default, so
a PUT without status enables a disabled webhook, and forgets its failures.
"""

from __future__ import annotations

from plugins.webhooks.delivery import JOBS, hear, is_awaited
from plugins.webhooks.operations import OPERATIONS, erase, export, kept_elsewhere, remove_all
from plugins.webhooks.settings import WebhooksSettings
from plugins.webhooks.store import CHECKS, DELIVERY_FIELDS, TABLES, WEBHOOK_IDS
from runtime.api.plugin import EVERY_EVENT, Plugin

__all__ = ["plugin"]

plugin = Plugin(
    name="webhooks",
    id_prefixes=("dlv", "whk"),
    records={"whk": lambda ctx, webhook_id: ctx[WEBHOOK_IDS].has(webhook_id)},
    operations=OPERATIONS,
    tables=TABLES,
    indexes=(DELIVERY_FIELDS,),
    subscribe={EVERY_EVENT: hear, "internal.account_taken": remove_all},
    audience=is_awaited,
    jobs=JOBS,
    erase=erase,
    export=export,
    kept_elsewhere=kept_elsewhere,
    checks=CHECKS,
    outbound_proxy=lambda settings: WebhooksSettings.of(settings).proxy,
    private_networks=lambda settings: WebhooksSettings.of(settings).allow_private_networks,
    settings={"webhooks": WebhooksSettings},
)
