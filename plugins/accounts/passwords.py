"""Passwords: hashed with argon2id on a few threads of their own, outside any transaction."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import argon2

from plugins.accounts import limits
from runtime.api.context import ReadContext
from runtime.errors import (
    Unavailable,
)

_threads = ThreadPoolExecutor(
    max_workers=limits.PASSWORD_HASH_THREADS_MAX, thread_name_prefix="mneme-password"
)
_seats = threading.BoundedSemaphore(limits.PASSWORD_HASHES_WAITING_MAX)


def hasher_of(ctx: ReadContext) -> argon2.PasswordHasher:
    cost = ctx.settings.auth
    return argon2.PasswordHasher(
        time_cost=cost.argon2_time_cost, memory_cost=cost.argon2_memory_kib, parallelism=1
    )


async def in_pool(function: Any, *arguments: Any) -> Any:
    """Run it on a password thread; refuse at once when too many wait, since each takes a good part
    of a second.
    """
    if not _seats.acquire(blocking=False):
        raise Unavailable("Too many people are registering or logging in. Retry in a moment.")
    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, function, *arguments)
    finally:
        _seats.release()


def fits(hasher: argon2.PasswordHasher, password_hash: str | None, password: str) -> bool:
    if password_hash is None:
        hasher.hash(password)  # as long as a verification takes
        return False
    try:
        return hasher.verify(password_hash, password)
    except argon2.exceptions.VerifyMismatchError:
        return False
