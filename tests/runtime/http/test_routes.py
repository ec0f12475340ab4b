"""The route table alone: precedence, parameters, and paths that try to be two things at once."""

import pytest

from runtime.errors import MethodNotAllowed, NotFound
from runtime.http.routes import Routes

ROUTES = Routes(
    [
        ("GET", "/v1/memories", "list"),
        ("POST", "/v1/memories", "create"),
        ("DELETE", "/v1/memories/all", "delete all"),
        ("GET", "/v1/memories/{id}", "read"),
        ("DELETE", "/v1/memories/{id}", "delete"),
        ("GET", "/v1/memories/jobs/{job_id}", "job"),
        ("GET", "/v1/memories/{id}/history", "history"),
        ("GET", "/v1/entities/{entity_name}", "entity"),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "target", "values"),
    [
        ("GET", b"/v1/memories", "list", {}),
        ("GET", b"/v1/memories/", "list", {}),
        ("HEAD", b"/v1/memories", "list", {}),
        ("POST", b"/v1/memories", "create", {}),
        ("GET", b"/v1/mem%6fries", "list", {}),
        ("DELETE", b"/v1/memories/all", "delete all", {}),
        ("DELETE", b"/v1/memories/all/", "delete all", {}),
        ("DELETE", b"/v1/memories/al", "delete", {"id": "al"}),
        ("GET", b"/v1/memories/mem_1/", "read", {"id": "mem_1"}),
        ("GET", b"/v1/memories/jobs/history", "job", {"job_id": "history"}),
        ("GET", b"/v1/memories/jobs2/history", "history", {"id": "jobs2"}),
        ("GET", b"/v1/memories/all/history", "history", {"id": "all"}),
        ("GET", b"/v1/entities/AC%2FDC", "entity", {"entity_name": "AC/DC"}),
        ("GET", b"/v1/entities/J%C3%BCrgen%20M", "entity", {"entity_name": "Jürgen M"}),
        ("GET", "/v1/entities/東京".encode(), "entity", {"entity_name": "東京"}),
        ("GET", b"/v1/entities/100%25", "entity", {"entity_name": "100%"}),
        ("GET", b"/v1/entities/a%252Fb", "entity", {"entity_name": "a%2Fb"}),
        ("GET", b"/v1/entities/...", "entity", {"entity_name": "..."}),
        ("GET", b"/v1/entities/a+b", "entity", {"entity_name": "a+b"}),
    ],
)
def test_finds(method, path, target, values):
    assert ROUTES.find(method, path) == (target, values)


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/",
        b"*",
        b"/v1",
        b"//v1/memories",
        b"/v1//memories",
        b"/v1/memories//",
        b"/v1/./memories",
        b"/v1/x/../memories",
        b"/v1/%2e%2e/memories",
        b"/v1/%2e/memories",
        b"/v1/entities/..",
        b"/v1/entities/%2E%2e",
        b"/v1/entities/",
        b"/v1/entities/%00",
        b"/v1/entities/a%00b",
        b"/v1/entities/a%0d%0ab",
        b"/v1/entities/%7f",
        b"/v1/entities/%ff",
        b"/v1/entities/\xff",
        b"/v1/entities/%zz",
        b"/v1/entities/%",
        b"/v1/entities/%4",
        b"/v1/entities/a/b",
        b"/v1/memories%2Fall",
        b"/v1\\memories",
        b"/V1/memories",
        b"/v1/memories;x=1",
        b"/v1/memories/all/all",
    ],
)
def test_finds_nothing(path):
    with pytest.raises(NotFound):
        ROUTES.find("GET", path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", b"/v1/memories", "GET, HEAD, POST"),
        ("OPTIONS", b"/v1/memories", "GET, HEAD, POST"),
        ("GET", b"/v1/memories/all", "DELETE"),
        ("HEAD", b"/v1/memories/all", "DELETE"),
        ("PATCH", b"/v1/memories/mem_1", "DELETE, GET, HEAD"),
    ],
)
def test_the_most_specific_path_decides_the_methods(method, path, allowed):
    with pytest.raises(MethodNotAllowed) as refused:
        ROUTES.find(method, path)
    assert refused.value.headers["Allow"] == allowed
