"""What tests of a plugin are written with: a service in the test's own process, and the contract.

def test_the_contract():
    assert check_plugin(plugin) == []

def test_a_bookmark_is_found(tmp_path):
    with Harness(tmp_path, plugin) as service:
        me = service.register()
        assert service.request("POST", "/v1/bookmarks", {"url": "…"}, who=me).status_code == 201
"""

from mneme.testing.contract import check_plugin
from mneme.testing.harness import Harness

__all__ = ["Harness", "check_plugin"]
