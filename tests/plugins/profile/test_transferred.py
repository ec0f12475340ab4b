"""What somebody set of a profile moves with the account: exported here, imported there."""

from __future__ import annotations

from tests.support.in_process import InProcess
from tests.support.transferred import brought, exported


def test_what_was_set_of_a_profile_comes_along(here: InProcess, there: InProcess) -> None:
    path = "/v1/profile?user_id=yan"
    source = here.register("yan@example.com")
    here.request("POST", "/v1/memories", {"content": "I am Yan.", "user_id": "yan"}, who=source)
    said = {
        "name": "Yannick", "timezone": "Europe/Lisbon", "language": "pt-PT", "bio": "Sails.",
        "static": [{"key": "diet", "value": "vegan"}],
    }  # fmt: skip
    before = here.request("PATCH", path, said, who=source).json()
    here.request("PATCH", "/v1/profile", {"bio": "An account's own."}, who=source)
    content = exported(here, source)
    mine = there.register("yan@elsewhere.example")
    assert brought(there, mine, content)["created"]["profile"] == 2
    after = there.request("GET", path, who=mine).json()
    for name in ("user_id", "name", "timezone", "language", "bio", "updated_at"):
        assert after[name] == before[name], name
    [ours], [theirs] = (
        [fact for fact in shown["static"] if fact["key"] == "diet"] for shown in (before, after)
    )
    assert {**theirs, "id": ""} == {**ours, "id": ""} and theirs["id"] != ours["id"]
    own = there.request("GET", "/v1/profile", who=mine).json()
    assert (own["user_id"], own["bio"]) == (None, "An account's own.")
    # What is set here already stays as it is.
    there.request("PATCH", path, {"bio": "Rows."}, who=mine)
    again = brought(there, mine, content)
    assert (again["created"]["profile"], again["known"]["profile"]) == (0, 2)
    assert there.request("GET", path, who=mine).json()["bio"] == "Rows."
