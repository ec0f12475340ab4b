"""Names in languages that no heads read, by the taggers that are installed here."""

from __future__ import annotations

import pytest

from runtime.inference.language import names

NAMED = {
    "我妹妹住在成都，她在清华大学念书。": {"成都": "place", "清华大学": "organization"},
    "王小明下周要去上海出差。": {"王小明": "person", "上海": "place"},
    "来週、京都へ引っ越します。田中花子さんが手伝ってくれます。": {
        "京都": "place",
        "田中花子": "person",
    },
    "내 여동생 민지는 부산에 살아.": {"민지": "", "부산": ""},
    "今天很累。": {},
    "今日はとても疲れた。": {},
    "My sister Ana lives in Porto.": {},
    "": {},
}


@pytest.mark.parametrize("text", NAMED)
def test_names_are_found_where_they_stand(text: str) -> None:
    found = names(text)
    assert {text[name.start : name.end]: name.kind for name in found} == NAMED[text]
    assert [name.start for name in found] == sorted(name.start for name in found)


def test_spaces_and_marks_move_no_name() -> None:
    for text in ("  我 住 在 \n 成都 ！", "😀 私は 東京 に住む", "(서울)에서  살아요…"):
        (name,) = names(text)
        assert text[name.start : name.end] in ("成都", "東京", "서울")
