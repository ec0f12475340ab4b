"""Which shard holds what: slots are placed on shards, and shards on nodes.

placement   the value: tenant -> slot -> shard, and how slots change their shard
table       where its versions are kept, each published once
copies      its versions and the layout, copied to the object store
gate        which slots a shard answers for at this moment
routing     how a gateway finds the shard of a slot, and learns of moves
"""

from runtime.placement.copies import LayoutCopies
from runtime.placement.gate import SlotGate
from runtime.placement.placement import (
    COPYING,
    ERASING,
    PLANNED,
    UNDOING,
    Attempt,
    Move,
    Place,
    Placement,
    PlacementError,
    balanced,
    evened,
)
from runtime.placement.routing import SlotMap
from runtime.placement.table import (
    PLACEMENT_DIRECTORY,
    PlacementTable,
    SharedPlacementTable,
    as_version,
    version_name,
    version_names,
)

__all__ = [
    "COPYING",
    "ERASING",
    "PLACEMENT_DIRECTORY",
    "PLANNED",
    "UNDOING",
    "Attempt",
    "LayoutCopies",
    "Move",
    "Place",
    "Placement",
    "PlacementError",
    "PlacementTable",
    "SharedPlacementTable",
    "SlotGate",
    "SlotMap",
    "as_version",
    "balanced",
    "evened",
    "version_name",
    "version_names",
]
