"""From a Credential to a Principal: who calls, and what it may do.

The gateway has read the Authorization header (runtime/http/credentials.py). The shard that owns the
slot resolves the credential against its tables in the call's own snapshot or transaction, so a
revocation holds for the very next request.

Three kinds of credential:

    key       an API key; only its keyed digest is stored, under which it is looked up
    jwt       an access token of registration or login (runtime/api/access_tokens.py)
    operator  the installation's own token; opens internal operations and nothing else
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.api import access_tokens, tenants
from runtime.api.access_tokens import invalid_credential
from runtime.api.operation import Credential, Principal
from runtime.errors import PermissionDenied, Unauthenticated
from runtime.limits import KEYS_IN_USE_MAX
from storage.store import Scope

if TYPE_CHECKING:
    from runtime.api.operation import Operation
    from runtime.installation import Secrets
    from storage.store import Reader


def resolve(
    reader: Reader, slot: int, credential: Credential | None, now_ms: int, secrets: Secrets
) -> tuple[Principal, Scope]:
    """A credential the gateway accepted -> (principal, its tenant's scope), as the tables say now.

    Raises Unauthenticated for a revoked, expired or unknown one, PermissionDenied for the operator,
    who is no tenant.
    """
    if credential is None:
        raise invalid_credential()
    if credential.kind == "operator":
        raise PermissionDenied("The operator token opens internal operations only.")
    if credential.kind == "key":
        return _owner_of(reader, slot, credential).at(now_ms)
    claims = credential.claims
    account = tenants.open_account(reader, slot, claims["tn"])
    if account is None or account.tenant_id != claims["sub"]:
        raise invalid_credential()
    scope = tenants.scope_of(slot, account)
    if not access_tokens.is_open(reader, scope, account, claims):
        raise Unauthenticated("This session has ended. Log in again with POST /v1/auth/login.")
    return tenants.principal_of(
        slot, account, tenants.SCOPES, claims["jti"], is_session=True
    ), scope


@dataclass(frozen=True, slots=True)
class _KeyOwner:
    """Whom an API key opens, and until when, Unix milliseconds."""

    principal: Principal
    scope: Scope
    expires_at: int | None

    def at(self, now_ms: int) -> tuple[Principal, Scope]:
        """Raise Unauthenticated where the key has expired."""
        if self.expires_at is not None and self.expires_at <= now_ms:
            raise Unauthenticated("This API key has expired.")
        return self.principal, self.scope


def _owner_of(reader: Reader, slot: int, credential: Credential) -> _KeyOwner:
    table = reader.bind(tenants.CREDENTIALS, Scope.of_slot(slot))
    row = table.get(credential.digest)
    for digest in credential.earlier:
        row = row or table.get(digest)
    account = None if row is None else tenants.open_account(reader, slot, row.tenant_number)
    if row is None or account is None:
        raise invalid_credential()
    principal = tenants.principal_of(slot, account, row.scopes, row.key_id)
    return _KeyOwner(principal, tenants.scope_of(slot, account), row.expires_at)


class KeysInUse:
    """API keys that snapshots of the last commit were asked for: what the tables say of one holds
    until there is another commit. Not thread-safe: the shard's event loop alone asks.
    """

    def __init__(self) -> None:
        self._sequence = -1
        self._owners: dict[tuple[int, bytes], _KeyOwner] = {}

    def resolve(
        self, snapshot: Reader, slot: int, credential: Credential, now_ms: int
    ) -> tuple[Principal, Scope]:
        """As `resolve`, of a key."""
        sequence, key = snapshot.sequence, (slot, credential.digest)
        if sequence != self._sequence or len(self._owners) >= KEYS_IN_USE_MAX:
            self._sequence, self._owners = sequence, {}
        owner = self._owners.get(key)
        if owner is None:
            owner = self._owners[key] = _owner_of(snapshot, slot, credential)
        return owner.at(now_ms)


def authorise(principal: Principal, operation: Operation, body: Any = None) -> None:
    """Raise PermissionDenied unless the principal's scopes cover the operation. Internal
    operations are for no tenant.

    body  None while it could not be read; what it asks for is then never done
    """
    if operation.internal:
        raise PermissionDenied("This operation is for the operator of the service.")
    scope = (
        operation.scope if operation.scope_of is None or body is None else operation.scope_of(body)
    )
    if scope != "public" and scope not in principal.scopes:
        raise PermissionDenied(f"This API key lacks the scope {scope!r}.")


def authorise_operator(credential: Credential | None) -> None:
    """The check of internal operations: raises unless the credential is the operator's."""
    if credential is None:
        raise Unauthenticated(
            "Send the operator token: `Authorization: Bearer <token>`.", code="missing_api_key"
        )
    if credential.kind != "operator":
        raise PermissionDenied("This operation is for the operator of the service.")
