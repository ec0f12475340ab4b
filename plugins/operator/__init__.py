"""What the operator asks of a running service, behind `mneme admin`: internal routes that no
account can reach.

accounts.py lists whom there is, busiest.py who takes most of a shard, placement.py says where slots
lie and moves them, repair.py puts right what derives from an account's rows, re_embedding.py brings
accounts to another embedding model. Owns no table, and of the features knows memories alone, for
their vectors: what there is to repair, the plugins declare.
"""

from __future__ import annotations

from plugins.operator import accounts, busiest, placement, re_embedding, repair
from runtime.api.plugin import Plugin

__all__ = ["plugin"]

plugin = Plugin(
    name="operator",
    requires=("memories",),
    operations=(
        *accounts.OPERATIONS,
        *busiest.OPERATIONS,
        *placement.OPERATIONS,
        *repair.OPERATIONS,
        *re_embedding.OPERATIONS,
    ),
)
