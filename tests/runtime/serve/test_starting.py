"""Until a service is up, its address answers that it is starting."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import httpx
import psutil
import pytest

from runtime.release import service_build, service_version
from runtime.serve import free_port
from runtime.serve.listening import StartError, check_port
from runtime.serve.starting import Starting, starting
from tests.support.first_answers import FirstAnswers, first_answers
from tests.support.served import Served, served
from tests.support.tiny_service import eventually
from tests.support.worlds import settings

HOST = "127.0.0.1"


def test_a_client_is_told_until_the_address_is_left() -> None:
    port = free_port(HOST)
    meanwhile = Starting(HOST, port, 1)
    answer = httpx.post(f"http://{HOST}:{port}/v1/memories", json={"content": "x" * 10_000})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert answer.json()["error"]["status_code"] == 503
    with socket.create_connection((HOST, port)):  # who says nothing keeps nobody waiting for long
        assert httpx.get(f"http://{HOST}:{port}/").status_code == 503
    meanwhile.close()
    meanwhile.close()
    check_port(HOST, port)


def test_what_a_client_is_told_carries_what_every_answer_carries() -> None:
    port = free_port(HOST)
    meanwhile = Starting(HOST, port, 1)
    named = httpx.get(f"http://{HOST}:{port}/v1/memories", headers={"X-Request-ID": "mine-1"})
    unnamed = httpx.get(f"http://{HOST}:{port}/v1/memories", headers={"X-Request-ID": "not mine"})
    meanwhile.close()
    assert named.headers["X-Request-ID"] == "mine-1"
    assert unnamed.headers["X-Request-ID"].startswith("req_")
    for each in (named, unnamed):
        assert each.json()["error"]["request_id"] == each.headers["X-Request-ID"]
        assert float(each.headers["X-Process-Time"]) >= 0
        assert each.headers["X-Service-Version"] == service_version()
        assert each.headers["X-Service-Build"] == service_build()


def test_who_asks_for_its_health_is_told_what_it_is() -> None:
    port = free_port(HOST)
    with starting(settings(http__host=HOST), port, 3):
        url = f"http://{HOST}:{port}/v1/health"
        for each in (url, f"{url}/", f"{url}?verbose=1"):
            answer = httpx.get(each, headers={"X-Request-ID": "mine-1"})
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            assert answer.headers["X-Request-ID"] == "mine-1"
            assert answer.json() == {
                "status": "starting",
                "version": service_version(),
                "build": service_build(),
                "shards": {"open": 0, "total": 3},
                "checks": {"shards": "0 of 3 are open"},
            }
        head = httpx.head(url)
        assert (head.status_code, head.content) == (503, b"")
        for other in (httpx.post(url), httpx.get(f"{url}y")):
            assert other.json()["error"]["status_code"] == 503


def test_who_waits_when_the_socket_is_handed_over_is_served_by_its_next_owner() -> None:
    port = free_port(HOST)
    meanwhile = Starting(HOST, port, 1)
    listener = meanwhile.hand_over()
    with socket.create_connection((HOST, port)) as client:
        meanwhile.close()
        listener.settimeout(5)
        accepted, _ = listener.accept()
        accepted.sendall(b"at last")
        assert client.recv(100) == b"at last"
        accepted.close()
    listener.close()


def test_the_address_is_left_when_who_tells_it_is_let_go(tmp_path: Path) -> None:
    port = free_port(HOST)
    meanwhile = Starting(HOST, port, 1)
    meanwhile.leave_when_told(tmp_path / "starting.sock")
    assert httpx.get(f"http://{HOST}:{port}/").status_code == 503
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(5)
        asking.connect(str(tmp_path / "starting.sock"))
        assert asking.recv(1) == b""
        check_port(HOST, port)
    meanwhile.close()
    meanwhile.close()


def test_who_tells_it_again_need_not_wait(tmp_path: Path) -> None:
    port = free_port(HOST)
    meanwhile = Starting(HOST, port, 1)
    meanwhile.leave_when_told(tmp_path / "starting.sock")
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(tmp_path / "starting.sock"))
        assert asking.recv(1) == b""
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
        late.connect(str(tmp_path / "starting.sock"))
    meanwhile.close()


def test_one_that_nobody_tells_can_be_closed(tmp_path: Path) -> None:
    port = free_port(HOST)
    meanwhile = Starting(HOST, port, 1)
    meanwhile.leave_when_told(tmp_path / "starting.sock")
    meanwhile.close()
    check_port(HOST, port)
    left = ("mneme-starting", "mneme-leaving")
    assert eventually(lambda: not [1 for each in threading.enumerate() if each.name in left])


def test_an_address_that_cannot_be_had_is_named() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"Port {port} on {HOST} is not available"):
            Starting(HOST, port, 1)


def test_a_service_in_one_process_answers_from_its_first_moment_on(tmp_path: Path) -> None:
    port = free_port(HOST)
    found = FirstAnswers()
    with first_answers(port, found), served(tmp_path / "data", port=port):
        found.check()
        assert found.refusals[1] == 0


@pytest.mark.ray
def test_a_service_on_ray_answers_from_its_first_moment_on(
    service_on_ray: Served, first_answers_on_ray: FirstAnswers
) -> None:
    first_answers_on_ray.check()


@pytest.mark.ray
def test_ray_starts_no_process_that_nobody_asks(service_on_ray: Served) -> None:
    parts = psutil.Process(service_on_ray.process.pid).children()
    scripts = {Path(word).name for part in parts for word in part.cmdline() if word.endswith(".py")}
    assert {"raylet", "gcs_server"} <= {part.name() for part in parts}
    assert not scripts & {"dashboard.py", "log_monitor.py", "monitor.py"}
