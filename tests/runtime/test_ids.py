"""Identifiers and the layout of API keys."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from runtime import ids

SECRET = b"k" * 32


@given(
    st.integers(0, 2**48 - 1),
    st.binary(min_size=4, max_size=4),
    st.binary(min_size=10, max_size=10),
)
def test_an_id_gives_back_its_tag(unix_ms: int, tag: bytes, random: bytes) -> None:
    text = ids.make_id("mem", unix_ms, tag, random)
    assert len(text) == 36 and ids.id_tag("mem", text) == tag
    assert ids.id_time(text) == unix_ms
    assert ids.id_tag("col", text) is None


@given(st.integers(0, 2**47), st.integers(1, 2**40))
def test_ids_sort_by_time(unix_ms: int, later: int) -> None:
    assert ids.make_id("mem", unix_ms, b"\xff" * 4, b"\xff" * 10) < ids.make_id(
        "mem", unix_ms + later, b"\0" * 4, b"\0" * 10
    )


def test_malformed_ids_have_no_tag() -> None:
    good = ids.make_id("mem", 1, b"abcd", b"0123456789")
    for bad in (
        "",
        "mem_",
        good[:-1],
        good + "0",
        good.upper(),
        good.replace("mem_", "mem-"),
        "mem_" + "u" * 32,
        good + "\n",
    ):
        assert ids.id_tag("mem", bad) is None
        assert ids.id_time(bad) is None


def test_a_key_carries_its_slot_and_refuses_any_change() -> None:
    key = ids.make_api_key(SECRET, 4095, os.urandom(26))
    assert len(key) == 71 and ids.api_key_slot(SECRET, key) == 4095
    assert ids.api_key_slot(b"other" * 8, key) is None
    for i in range(len("mem_sk_"), len(key)):
        changed = key[:i] + ("0" if key[i] != "0" else "1") + key[i + 1 :]
        assert ids.api_key_slot(SECRET, changed) is None
    for bad in ("", key[:-1], key + "0", "mem_sk_" + "zz" * 32, "mem_sk_" + "0 " * 32):
        assert ids.api_key_slot(SECRET, bad) is None


def test_derived_random_depends_on_seed_and_counter() -> None:
    assert ids.derived_random(b"s" * 32, 1, 10) == ids.derived_random(b"s" * 32, 1, 10)
    made = {ids.derived_random(seed, n, 10) for seed in (b"a" * 32, b"b" * 32) for n in range(100)}
    assert len(made) == 200
