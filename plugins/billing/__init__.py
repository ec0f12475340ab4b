"""Billing: the subscription of an account, its invoices, and what the operator does with both.

    ledger.py        documents and the double-entry ledger
    periods.py       tiers, proration, the closing of months
    stripe.py        Stripe as the collector; without it the operator marks invoices paid
    collecting.py    the jobs that hand an invoice to it, and take one back
    upgrades.py      upgrades that wait for their payment
    arrears.py       what follows when an invoice stays open
    retained.py      what is kept of the bills of erased accounts
    invoice_page.py  an invoice as a page
    operations.py    what of that can be asked for over HTTP

Operations for the operator name an account by its e-mail address and act inside its tenant; `mneme
admin` calls them (runtime/cli/admin.py).
"""

from __future__ import annotations

from plugins.billing import periods, retained
from plugins.billing.arrears import EVENTS, REVIEW
from plugins.billing.collecting import JOBS
from plugins.billing.ledger import CHECKS
from plugins.billing.operations import FOR_CUSTOMERS, FOR_THE_OPERATOR, TABLES, erase, export
from plugins.billing.settings import BillingSettings, kept_elsewhere, offer
from plugins.billing.stripe import STRIPE
from runtime.api import metering
from runtime.api.plugin import Job, Plugin

__all__ = ["plugin"]

plugin = Plugin(
    name="billing",
    id_prefixes=("inv", "sub"),
    operations=(*FOR_CUSTOMERS, *FOR_THE_OPERATOR, *retained.OPERATIONS),
    tables=(*TABLES, *retained.TABLES),
    events=EVENTS,
    subscribe={metering.PERIOD_STARTED.kind: periods.period_started},
    jobs=(Job(periods.CLOSE_JOB, periods.close_job), REVIEW, *JOBS),
    retain=retained.retain,
    erase=erase,
    export=export,
    kept_elsewhere=kept_elsewhere,
    checks=CHECKS,
    settings={"billing": BillingSettings},
    extras=(STRIPE,),
    offer=offer,
)
