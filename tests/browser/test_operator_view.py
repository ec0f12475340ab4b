"""The operator's view: nothing without the token, which stays in the page; with it, what there is
and what moves.
"""

from __future__ import annotations

import httpx

from tests.browser.person import NARROW, Person
from tests.support.served import Served


def test_the_operator_sees_shards_and_moves_without_an_account(
    visitor: Person, service: Served
) -> None:
    token = (service.data_dir / "secrets/operator_token").read_text().strip()
    visitor.open("/operator")
    visitor.see("For the operator of this installation.")
    visitor.fill("Token", "mem_op_" + "0" * 64)
    visitor.press("Look")
    visitor.until(lambda: visitor.all(".problem:not([hidden])"), lambda: visitor.text)
    assert not visitor.all("table")
    assert any("401" in complaint for complaint in visitor.complaints()), (
        "the browser's own remark on the refusal"
    )

    visitor.fill("Token", token)
    visitor.press("Look")
    visitor.see("2 of 2", "this machine", "no object store", "No slot is on its way", "0 finished")
    assert [row.text.split()[:4] for row in visitor.all("section:nth-of-type(2) tbody tr")] == [
        ["0", "this", "machine", "open"], ["1", "this", "machine", "open"],
    ]  # fmt: skip
    assert token not in visitor.browser.page_source
    assert (
        visitor.browser.execute_script(
            "return localStorage.length + sessionStorage.length + document.cookie.length"
        )
        == 0
    )

    order = {"slots": [7], "shard": 1}
    answer = httpx.post(
        f"{service.url}/v1/internal/cluster/moves",
        json=order,
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )
    assert answer.status_code == 202, answer.text
    visitor.see("1 finished", "2,047", "2,049")
    visitor.look_through(NARROW, "dark")
    assert visitor.overflowing == []

    visitor.press("Forget the token")
    visitor.see("Operator token")
    assert not visitor.all("table")


def test_an_account_is_no_operator(ada: Person) -> None:
    ada.open("/operator")
    ada.fill("Token", ada.token)
    ada.press("Look")
    ada.until(lambda: ada.all(".problem:not([hidden])"), lambda: ada.text)
    assert not ada.all("table")
    assert ada.complaints()
