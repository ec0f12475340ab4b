"""The thread on which cells are learned, vectors are put into them, and files are written, so that
no commit waits for any of it.

It owns whose turn it is. What is behind is no less right: what is in no cell is scanned.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

log = logging.getLogger("mneme.indexes")

Tenant = TypeVar("Tenant", bound=Hashable)


class Builder(Generic[Tenant]):
    """Lets what is resident of tenants take steps, one of each after the other, until none is due.
    The thread ends then, and begins anew with the next that is behind.

    advance  takes one step of a tenant; -> whether another is due
    """

    def __init__(self, advance: Callable[[Tenant], bool]):
        self._advance = advance
        self._lock = threading.Lock()
        self._behind: OrderedDict[Tenant, None] = OrderedDict()
        self._runs = False

    def want(self, tenant: Tenant) -> None:
        """Let the tenant catch up soon."""
        with self._lock:
            self._behind[tenant] = None
            if self._runs:
                return
            self._runs = True
        # Nothing it does has to be finished: what it made is gone with the process.
        threading.Thread(target=self._run, name="builder", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._behind:
                    self._runs = False
                    return
                tenant, _ = self._behind.popitem(last=False)
            try:
                is_behind = self._advance(tenant)
            except Exception:
                log.exception("cells could not be made, or a file beside the store not be written")
                continue
            if is_behind:
                with self._lock:
                    self._behind.setdefault(tenant)
