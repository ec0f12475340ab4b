"""What the operator asks of a running service, behind `mneme admin`: internal routes that no
account can reach.

accounts.py lists whom there is, placement.py says where slots lie and moves them, repair.py puts
right what derives from an account's rows. Owns no table, and knows no feature: what there is to
repair, the plugins declare.
"""

from __future__ import annotations

from plugins.operator import accounts, placement, repair
from runtime.api.plugin import Plugin

__all__ = ["plugin"]

plugin = Plugin(
    name="operator",
    operations=(*accounts.OPERATIONS, *placement.OPERATIONS, *repair.OPERATIONS),
)
