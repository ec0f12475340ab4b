"""The description against the service: Schemathesis makes requests from the one, and the other has
to answer as described.

Every operation gets what its schema allows and what it forbids, with an admin's key and without
any. No answer may be a server error or have a status, a content type, a header or a shape that is
not described; what the schema forbids is refused, and nobody gets in without the key. The requests
are the same in every run.

Of Schemathesis's checks one is left out, that whatever fits the schema is accepted: what fields
must be to each other, or that an id must exist, a schema does not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import negative_data_rejection, not_a_server_error
from schemathesis.config import (
    ChecksConfig,
    CoveragePhaseConfig,
    GenerationConfig,
    PhasesConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)
from schemathesis.config._checks import NegativeDataRejectionConfig
from schemathesis.specs.openapi import checks

import serve_app
from runtime.http import openapi
from tests.support import upstream
from tests.support.served import Served, served

MANY = settings.get_current_profile_name() == "random"  # make test-long
REQUESTS_PER_OPERATION = 20 if MANY else 1  # beside those on and beyond each bound
REFUSED_REQUESTS_PER_OPERATION = 5 if MANY else 1
PATHS_PER_TEST = 6  # a schema is read for each test, which takes as long as ten requests
SEED = 20
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    negative_data_rejection,
    checks.ignored_auth,
    checks.unsupported_method,
    checks.allow_header_conformance,
    checks.missing_required_header,
    checks.use_after_free,
    checks.ensure_resource_availability,
]


GENERATION = GenerationConfig(
    modes=list(GenerationMode),
    max_examples=REQUESTS_PER_OPERATION,
    deterministic=True,
    database="none",
    with_security_parameters=False,  # the tests bring or leave out the credential themselves
    allow_extra_parameters=False,  # unknown ones are ignored
)
# 409: the key of an earlier request. 414: an address that is too long is refused before anything in
# it is looked at. 415: so is a file of a format that is not read, before the fields beside it.
REFUSALS = NegativeDataRejectionConfig(
    expected_statuses=[400, 401, 403, 404, 405, 409, 414, 415, 422]
)


DOCUMENT = openapi.document(serve_app.registry(), "1.2.3")
PATHS = list(DOCUMENT["paths"])
GROUPS = [PATHS[at : at + PATHS_PER_TEST] for at in range(0, len(PATHS), PATHS_PER_TEST)]


def described(paths: list[str], *, boundaries: bool) -> schemathesis.BaseSchema:
    """The operations of these paths; with the values on and beyond each bound of their schemas,
    besides random ones, or without.
    """
    phases = PhasesConfig(coverage=CoveragePhaseConfig(enabled=boundaries))
    project = ProjectConfig(
        generation=GENERATION, phases=phases, checks=ChecksConfig(negative_data_rejection=REFUSALS)
    )
    config = SchemathesisConfig(seed=SEED, projects=ProjectsConfig(default=project))
    document = {**DOCUMENT, "paths": {path: DOCUMENT["paths"][path] for path in paths}}
    return schemathesis.openapi.from_dict(document, config=config)


# Requests are made up when their test runs, which one worker does, and not when every worker lists
# the tests.
@pytest.fixture(params=GROUPS, ids=itemgetter(0))
def with_boundaries(request: pytest.FixtureRequest) -> schemathesis.BaseSchema:
    return described(request.param, boundaries=True)


@pytest.fixture(params=GROUPS, ids=itemgetter(0))
def without_boundaries(request: pytest.FixtureRequest) -> schemathesis.BaseSchema:
    return described(request.param, boundaries=False)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with (
        upstream.upstream() as endpoint,
        served(tmp_path_factory.mktemp("fuzzed") / "data", llm__base_url=endpoint.url) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """A connection that is kept, and no look at the environment's proxies for each request."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture(scope="module")
def admin(service: Served) -> str:
    body = {"name": "of a test", "scopes": ["admin"]}
    headers = {"Authorization": f"Bearer {service.register()}"}
    return service.http.post("/v1/auth/api-keys", json=body, headers=headers).json()["key"]


@schemathesis.pytest.from_fixture("with_boundaries").parametrize()
@settings(
    max_examples=REQUESTS_PER_OPERATION, deadline=None, suppress_health_check=list(HealthCheck)
)
def test_with_a_key(case: Case, service: Served, session: requests.Session, admin: str) -> None:
    case.call_and_validate(
        base_url=service.url,
        session=session,
        headers={"Authorization": f"Bearer {admin}"},
        checks=CHECKS,
    )


@schemathesis.pytest.from_fixture("without_boundaries").parametrize()
@settings(
    max_examples=REFUSED_REQUESTS_PER_OPERATION,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_without_a_key(case: Case, service: Served, session: requests.Session) -> None:
    """Whatever the request looks like, it is not let in; only what is public answers at all."""
    answer = case.call(base_url=service.url, session=session)
    case.validate_response(
        answer, checks=[check for check in CHECKS if check is not checks.ignored_auth]
    )
    if case.operation.definition.raw["security"]:
        assert answer.status_code in (401, 404, 405, 414), answer.text
