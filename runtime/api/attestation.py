"""What this installation says that it has made: a tag over bytes that it alone can make, and that
it knows again.

The keys derive from the service secrets and the purpose: the present secret makes tags, and what
the one before has made is known as long as that is given. A key may leave the shard for its
gateway, never for a caller.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.api.context import ReadContext


def attesting_key(ctx: ReadContext, purpose: str) -> bytes:
    """What tags of this purpose are made with."""
    return _keys(ctx, purpose)[0]


def attested(key: bytes, content: bytes) -> str:
    """The tag of this content, as hex digits."""
    return hmac.digest(key, content, "sha256").hex()


def is_attested(ctx: ReadContext, purpose: str, content: bytes, tag: str) -> bool:
    """Whether this installation has made the tag."""
    given = tag.encode()
    return any(
        [hmac.compare_digest(attested(key, content).encode(), given) for key in _keys(ctx, purpose)]
    )


def _keys(ctx: ReadContext, purpose: str) -> list[bytes]:
    services = ctx._environment.secrets.services
    return [hmac.digest(secret, b"attest:" + purpose.encode(), "sha256") for secret in services]
