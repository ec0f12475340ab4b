"""What `mneme doctor` says of secrets: where they lie, who may read them, and whether they belong
to the data.
"""

from __future__ import annotations

from runtime.cli.finding import Finding
from runtime.installation import (
    SECRET_NAMES,
    Secrets,
    SecretsError,
    key_rings,
    read_key_ring,
)
from runtime.settings import Settings
from storage.store import StoreError, WrongServiceKey


def service_secrets(settings: Settings) -> Finding:
    """Check that they open what is stored, and that in production they are given, so that whoever
    has the disk has not the keys as well.
    """
    wrong = _of_other_data(settings)
    if wrong is not None:
        return Finding("wrong", f"secrets: {wrong}", "give the secrets that belong to this data")
    kept = [name for name in SECRET_NAMES if getattr(settings.secrets, name) is None]
    if not kept:
        return Finding("ok", "secrets: all are given")
    if settings.environment != "production":
        return _kept(settings, kept)
    remedy = ", ".join(f"MNEME_SECRETS__{name.upper()}" for name in kept)
    if settings.secrets.allow_generated:
        what = (
            f"secrets: {', '.join(kept)} lie beside the data they protect: a copy of the disk is a "
            "copy of the keys"
        )
        return Finding(
            "advice", what, f"move them into the environment ({remedy}) and keep a copy elsewhere"
        )
    what = f"secrets: {', '.join(kept)} are not given, so the service refuses to start"
    return Finding("wrong", what, f"give {remedy}, or set secrets.allow_generated")


def _kept(settings: Settings, names: list[str]) -> Finding:
    directory = settings.data_dir / "secrets"
    files = [directory / name for name in names]
    open_ones = [str(path) for path in files if path.exists() and path.stat().st_mode & 0o077]
    if open_ones:
        what = f"secrets: others than their user may read {', '.join(open_ones)}"
        return Finding("wrong", what, f"chmod 700 {directory} && chmod 600 {' '.join(open_ones)}")
    return Finding(
        "ok", f"secrets: {', '.join(names)} lie in the data directory, readable by its user only"
    )


def _of_other_data(settings: Settings) -> str | None:
    """Why these secrets do not belong to what is stored; None where they do, or nothing is."""
    rings = key_rings(settings.data_dir)
    if not rings:
        return None
    try:
        secrets = Secrets.of(settings)
        for path in rings:
            read_key_ring(path, secrets).close()
    except (SecretsError, WrongServiceKey) as other:
        return str(other)
    except StoreError:
        return None  # a damaged ring is the store's matter
    return None
