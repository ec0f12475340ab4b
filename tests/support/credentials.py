"""An account as it is stored, what its credentials are made with, and one of them."""

from __future__ import annotations

from runtime import ids
from runtime.api import tenants
from runtime.installation import Secrets

NOW = 1_778_248_560_000
SLOT = 4_095
DAY = 24 * 3600
SECRETS = Secrets(b"s" * 32, b"p" * 32, "mem_op_" + "0" * 64)
KEY = ids.make_api_key(SECRETS.service, SLOT, b"k" * 26)
ACCOUNT = tenants.TenantRow(
    number=7,
    tenant_id="usr_7",
    tag=ids.tenant_tag(SECRETS.service, "usr_7"),
    key=b"t" * 32,
    email="ada@example.com",
    full_name="Ada",
    password_hash="$argon2id$",
    tier="pro",
    created_at=NOW - 1,
)
