from __future__ import annotations

import base64
import json

import jwt
import pytest

from runtime import ids
from runtime.api import access_tokens, tenants
from runtime.api.access_tokens import TOKEN_CLAIMS, signing_key
from runtime.api.operation import Credential
from runtime.errors import Unauthenticated
from runtime.http.credentials import read_authorization
from runtime.installation import Secrets
from tests.support.credentials import ACCOUNT, DAY, KEY, NOW, SECRETS, SLOT


def token(account: tenants.TenantRow = ACCOUNT, secrets: Secrets = SECRETS) -> str:
    return access_tokens.issue_token(
        SLOT, account, secrets, now_ms=NOW, lifetime_seconds=DAY, token_id=(b"j" * 16).hex()
    )[0]


@pytest.mark.parametrize("header", [None, "", "   ", "Bearer", "Bearer  ", "token "])
def test_no_credential_is_missing_api_key(header: str | None) -> None:
    with pytest.raises(Unauthenticated) as refused:
        read_authorization(header, SECRETS, NOW)
    assert refused.value.code == "missing_api_key"
    assert refused.value.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    [
        KEY,
        f"Basic {KEY}",
        f"Bearer {KEY} {KEY}",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY[:-1]}{'0' if KEY[-1] != '0' else '1'}",
        f"Bearer {ids.make_api_key(b'x' * 32, SLOT, b'k' * 26)}",
        f"Bearer {ids.make_api_key(SECRETS.service, 4096, b'k' * 26)}",
        "Bearer mem_sk_" + "zz" * 32,
        "Bearer mem_sk_" + " " * 64,
        "Bearer a.b.c",
        "Bearer e30.e30.e30",
        "Bearer ünsinn",
        "Bearer \udcff",
        "Basic",
    ],
)
def test_what_cannot_be_genuine_is_refused_at_the_gateway(header: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        read_authorization(header, SECRETS, NOW)
    assert refused.value.code == "invalid_api_key"
    assert KEY[8:20] not in refused.value.message


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Token", "token"])
def test_an_api_key_tells_its_slot_and_is_known_by_its_digest(scheme: str) -> None:
    credential, slot = read_authorization(f"{scheme} {KEY}", SECRETS, NOW)
    assert slot == SLOT
    assert credential == Credential("key", digest=ids.api_key_digest(SECRETS.pepper, KEY))


def test_the_operator_token_is_a_credential_of_its_own() -> None:
    assert read_authorization(f"Bearer {SECRETS.operator_token}", SECRETS, NOW) == (
        Credential("operator"),
        0,
    )


def test_an_access_token_carries_slot_and_tenant() -> None:
    credential, slot = read_authorization(f"Bearer {token()}", SECRETS, NOW)
    assert (credential.kind, slot) == ("jwt", SLOT)
    assert credential.claims | {} == {
        "iss": "mneme", "aud": "mneme-api", "sub": "usr_7", "slot": SLOT, "tn": 7, "tv": 0,
        "iat": NOW // 1000, "exp": NOW // 1000 + DAY, "jti": b"j".hex() * 16,
    }  # fmt: skip


def test_a_token_expires_by_the_call_s_clock() -> None:
    read_authorization(f"Bearer {token()}", SECRETS, NOW + DAY * 1000 - 1000)
    with pytest.raises(Unauthenticated, match="expired"):
        read_authorization(f"Bearer {token()}", SECRETS, NOW + DAY * 1000)


def test_a_token_that_was_read_before_is_judged_anew() -> None:
    header = f"Bearer {token()}"
    known, _ = read_authorization(header, SECRETS, NOW)
    known.claims.clear()
    again, _ = read_authorization(header, SECRETS, NOW)
    assert again.claims["sub"] == ACCOUNT.tenant_id
    with pytest.raises(Unauthenticated, match="expired"):
        read_authorization(header, SECRETS, NOW + DAY * 1000)
    with pytest.raises(Unauthenticated):
        read_authorization(header, Secrets.generate(), NOW)


def forged(header: dict, claims: dict, key: bytes = b"", algorithm: str = "HS256") -> str:
    return jwt.encode(claims, key, algorithm, headers=header)


@pytest.mark.filterwarnings("ignore:The HMAC key")
def test_forged_tokens_are_refused() -> None:
    claims = jwt.decode(token(), options={"verify_signature": False})
    genuine = signing_key(SECRETS, "1")
    assert read_authorization("Bearer " + forged({"kid": "1"}, claims, genuine), SECRETS, NOW)
    head, body, _ = token().split(".")
    unsigned = (
        base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "1", "typ": "JWT"}).encode())
        .rstrip(b"=")
        .decode()
    )
    forgeries = [
        token(secrets=Secrets(b"x" * 32, SECRETS.pepper, SECRETS.operator_token)),
        f"{head}.{body}.",
        f"{unsigned}.{body}.",
        forged({"kid": "1"}, claims, genuine, "HS512"),
        forged({"kid": "2"}, claims, signing_key(SECRETS, "2")),
        forged({}, claims, genuine),
        forged({"kid": "1"}, claims, SECRETS.service),
        *(forged({"kid": "1"}, {**claims, name: "other"}, genuine) for name in ("iss", "aud")),
        *(
            forged({"kid": "1"}, {k: v for k, v in claims.items() if k != name}, genuine)
            for name in TOKEN_CLAIMS
        ),
    ]
    for text in forgeries:
        with pytest.raises(Unauthenticated) as refused:
            read_authorization(f"Bearer {text}", SECRETS, NOW)
        assert refused.value.code == "invalid_api_key"
