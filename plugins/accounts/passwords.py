"""Passwords: hashed with argon2id on a few threads of their own, outside any transaction; and what
a new one must not be.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import argon2

from plugins.accounts import limits
from runtime.api.context import ReadContext
from runtime.errors import PermissionDenied, Unauthenticated, Unavailable, ValidationFailed
from runtime.long_work import cores
from runtime.processor_turns import go_last


class WrongPassword(Unauthenticated):
    guess = True


class WrongCurrentPassword(PermissionDenied):
    guess = True


# Those of the commonest passwords that are long enough to get here.
_COMMONEST = """
    0123456789 0987654321 1234567890 1234567891 12345678910 123456789a 1234512345 1234554321
    1q2w3e4r5t 1qaz2wsx3edc 9876543210 a123456789 abcd123456 abcdefghij adminadmin administrator
    aa12345678 baseball123 changeme123 computer123 football123 iloveyou123 letmein123 liverpool123
    passw0rd123 password00 password01 password11 password12 password123 password1234 password12345
    passwordpassword princess123 qazwsxedcrfv qwerty12345 qwerty123456 qwertyqwerty qwertyuiop
    qwertyuiop123 sunshine123 superman123 test123456 testtest123 welcome123 welcome1234 zaq12wsxcde3
"""

_threads = ThreadPoolExecutor(
    max_workers=limits.PASSWORD_HASH_THREADS_MAX,
    thread_name_prefix="mneme-password",
    initializer=go_last,
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
        return await asyncio.get_running_loop().run_in_executor(
            _threads, _in_turn, function, *arguments
        )
    finally:
        _seats.release()


def _in_turn(function: Any, *arguments: Any) -> Any:
    """All that is hashed counts as one account's, since nobody is known to be anybody yet."""
    with cores().held("passwords"):
        return function(*arguments)


def fits(hasher: argon2.PasswordHasher, password_hash: str | None, password: str) -> bool:
    if password_hash is None:
        hasher.hash(password)  # as long as a verification takes
        return False
    try:
        return hasher.verify(password_hash, password)
    except argon2.exceptions.VerifyMismatchError:
        return False


def check_new(password: str, email: str) -> None:
    """Refuse a new password that is guessed first. Raises ValidationFailed."""
    said = password.strip().lower()
    if said in (email, email.partition("@")[0]):
        raise _refused("Must not be the e-mail address.")
    if said in _COMMONEST.split() or len(set(said)) == 1:
        raise _refused("Is among the passwords that are guessed first; take a longer one.")


def check_other(password: str, current: str) -> None:
    """Refuse a new password that is the old one. Raises ValidationFailed."""
    if password == current:
        raise _refused("Must differ from the current password.")


def _refused(reason: str) -> ValidationFailed:
    return ValidationFailed.at(("body", "new_password"), reason)
