"""The three secrets of an installation, and where they are kept.

    service         32 bytes  signs API keys and tenant tags; the keys that sign session tokens
                              derive from it
    pepper          32 bytes  keys the digests under which API keys and e-mail addresses are stored
    operator_token  text      opens the internal routes for `mneme admin` and `mneme keys`

Each is one file of <data directory>/secrets, mode 0600: the two keys as hex digits, the token as it
is. They are made when a data directory is created and read ever after; losing `service` or `pepper`
makes every API key useless. A value given in the settings wins over the file and is never written
to disk.

`service` also wraps the data keys of accounts: without it nothing that is stored can be read.

Each can be exchanged: beside the new one the one before is given under the same name with
`_previous` behind it, as a setting or a file. The new one signs and wraps, and what the one before
has signed is accepted for as long as it is given. In production a secret must be given, unless the
settings allow one beside the data.

Which pepper the digests of a data directory are keyed with is remembered there, in `pepper.mark`:
with another one no login and no API key would be found, and each address could be registered anew.

This module does not know what else the secrets protect. Invariant: a Secrets object holds keys of
the right size, and nothing here puts one into a message or a repr. A process that holds one leaves
no core dump, and no other of its user reads its memory or environment (on Linux).
"""

from __future__ import annotations

import ctypes
import hmac
import os
import secrets as system
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.store import make_directory

if TYPE_CHECKING:
    from runtime.settings import Settings

KEY_BYTES = 32
_PR_SET_DUMPABLE = 4
OPERATOR_TOKEN_PREFIX = "mem_op_"
OPERATOR_TOKEN_CHARS_MIN = 32
OPERATOR_TOKEN_CHARS_MAX = 255
SECRET_FILE_BYTES_MAX = 1024
PEPPER_MARK_FILE = "pepper.mark"

SECRET_NAMES = ("service", "pepper", "operator_token")
_BEFORE = "_previous"
PREVIOUS = tuple(name + _BEFORE for name in SECRET_NAMES)


class SecretsError(Exception):
    """A secret is missing, unreadable or of the wrong size; the message is one sentence that names
    it.
    """


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the service must keep to itself. Pickles, since shard actors receive it; its repr shows
    nothing.
    """

    service: bytes = field(repr=False)
    pepper: bytes = field(repr=False)
    operator_token: str = field(repr=False)
    service_previous: bytes | None = field(default=None, repr=False)
    pepper_previous: bytes | None = field(default=None, repr=False)
    operator_token_previous: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("service", "pepper", "service_previous", "pepper_previous"):
            key = getattr(self, name)
            if key is not None and len(key) != KEY_BYTES:
                raise SecretsError(
                    f"The secret {name!r} must be {KEY_BYTES} bytes long, not {len(key)}."
                )
        for name, token in zip(
            ("operator_token", "operator_token_previous"), self.operator_tokens, strict=False
        ):
            visible = token.isascii() and token.isprintable() and " " not in token
            if not (visible and OPERATOR_TOKEN_CHARS_MIN <= len(token) <= OPERATOR_TOKEN_CHARS_MAX):
                raise SecretsError(
                    f"The secret {name!r} must be {OPERATOR_TOKEN_CHARS_MIN} to "
                    f"{OPERATOR_TOKEN_CHARS_MAX} visible ASCII characters."
                )
        _keep_to_itself()

    @property
    def services(self) -> tuple[bytes, ...]:
        """The service's secrets that are good: what signs, then the one before."""
        return (self.service, *self.earlier_services)

    @property
    def earlier_services(self) -> tuple[bytes, ...]:
        return () if self.service_previous is None else (self.service_previous,)

    @property
    def peppers(self) -> tuple[bytes, ...]:
        """The peppers that digests may be keyed with: the present one first."""
        return (self.pepper, *(() if self.pepper_previous is None else (self.pepper_previous,)))

    @property
    def operator_tokens(self) -> tuple[str, ...]:
        """The operator's tokens that are good: the present one first."""
        before = self.operator_token_previous
        return (self.operator_token, *(() if before is None else (before,)))

    @classmethod
    def generate(cls) -> Secrets:
        """Fresh secrets from the system's random source."""
        made: Any = (_parsed(name, _generated(name), "the random source") for name in SECRET_NAMES)
        return cls(*made)

    @classmethod
    def of(cls, settings: Settings, *, create: bool = False) -> Secrets:
        """Those of an installation: what the settings give, the rest from its data directory.
        Raises SecretsError.

        In production a secret must be given, or the settings must say that one may lie beside the
        data it protects. On several nodes all must be given, since the nodes share no directory.
        """
        texts = {name: getattr(settings.secrets, name) for name in (*SECRET_NAMES, *PREVIOUS)}
        given = {name: text.get_secret_value() for name, text in texts.items() if text is not None}
        kept = [name for name in SECRET_NAMES if name not in given]
        if kept and settings.cluster.name is not None:
            raise SecretsError(
                f"On several nodes give secrets.{kept[0]} (MNEME_SECRETS__{kept[0].upper()}), the "
                "same on all of them."
            )
        if kept and settings.environment == "production" and not settings.secrets.allow_generated:
            raise SecretsError(
                f"In production give secrets.{kept[0]} (MNEME_SECRETS__{kept[0].upper()}), or set "
                "secrets.allow_generated to keep "
                "generated secrets in the data directory, beside the data they protect."
            )
        found = cls.load(settings.data_dir / "secrets", create=create, given=given)
        found._recognise_pepper(settings.data_dir)
        return found

    def mark_pepper(self, data_dir: Path) -> None:
        """Remember which pepper the digests of this data directory are keyed with from now on."""
        mark = _mark_of(self.pepper)
        if _mark_in(data_dir) != mark:
            _write(data_dir / PEPPER_MARK_FILE, mark)

    def _recognise_pepper(self, data_dir: Path) -> None:
        """Raise SecretsError where the mark there is of another pepper than those at hand."""
        if _mark_in(data_dir) in (None, *map(_mark_of, self.peppers)):
            return
        raise SecretsError(
            f"The secret 'pepper' is not the one that {data_dir} was made with: no login and no "
            "API key would be found. Give that one, or give it as secrets.pepper_previous beside "
            f"the new one. If it is lost, remove {data_dir / PEPPER_MARK_FILE} and start; `mneme "
            "admin verify --repair` then lets accounts log in again, and API keys are minted anew."
        )

    @classmethod
    def load(
        cls, directory: Path, *, create: bool, given: Mapping[str, str] | None = None
    ) -> Secrets:
        """Read the secrets kept in `directory`.

        create  make the missing ones; otherwise a missing one is refused
        given   name -> text of those that the settings provide, keys as 64 hex digits; their files
                are neither read nor made

        The caller holds the data directory, so nobody else creates the files meanwhile. Raises
        SecretsError.
        """
        given = given or {}
        unknown = sorted(set(given) - {*SECRET_NAMES, *PREVIOUS})
        if unknown:
            raise SecretsError(
                f"There is no secret named {unknown[0]!r}; the secrets are "
                f"{', '.join(SECRET_NAMES)}."
            )
        values = {}
        for name in SECRET_NAMES:
            path = directory / name
            if name in given:
                values[name] = _parsed(name, given[name], "the settings")
                continue
            if create and not path.exists():
                _write(path, _generated(name))
            values[name] = _parsed(name, _read(name, path), str(path))
        for name in PREVIOUS:
            path = directory / name
            if name in given:
                values[name] = _parsed(name, given[name], "the settings")
            elif name.removesuffix(_BEFORE) not in given and path.exists():
                values[name] = _parsed(name, _read(name, path), str(path))
        return cls(**values)


def _mark_of(pepper: bytes) -> str:
    """What tells a pepper from others, and nothing of it."""
    return hmac.digest(pepper, b"which pepper this is", "sha256").hex()


def _mark_in(data_dir: Path) -> str | None:
    path = data_dir / PEPPER_MARK_FILE
    return _read(PEPPER_MARK_FILE, path).strip() if path.exists() else None


def _generated(name: str) -> str:
    digits = system.token_hex(KEY_BYTES)
    return OPERATOR_TOKEN_PREFIX + digits if name == "operator_token" else digits


def _parsed(name: str, text: str, origin: str) -> bytes | str:
    if name.startswith("operator_token"):
        return text.strip()
    try:
        key = bytes.fromhex(text)
    except ValueError:
        raise SecretsError(
            f"The secret {name!r} of {origin} is not written as hex digits."
        ) from None
    if len(key) != KEY_BYTES:
        raise SecretsError(
            f"The secret {name!r} of {origin} must be {KEY_BYTES} bytes long ({2 * KEY_BYTES} hex "
            f"digits), not {len(key)}."
        )
    return key


def _read(name: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SECRET_FILE_BYTES_MAX).decode("ascii")
    except FileNotFoundError:
        raise SecretsError(f"The secret {name!r} is missing: {path} does not exist.") from None
    except (OSError, UnicodeDecodeError) as unreadable:
        raise SecretsError(
            f"The secret {name!r} cannot be read from {path}: {unreadable}."
        ) from None


def _write(path: Path, text: str) -> None:
    """Put the text there whole or not at all: a crash leaves no half-written secret behind."""
    make_directory(path.parent)
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    parent = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _keep_to_itself() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
