"""Whether a regular expression takes more than its fair time: strings that repeat something, at two
lengths, in a child process.

`slow` holds every pattern against prefix + unit × n + suffix. Units are what the pattern's own
loops repeat (read off its parse tree) and a fixed list of marks, spaces, digits, letters and
comment openers. Processor time is compared, best of several tries: a pattern is slow when the
longer string costs both more than COST_SECONDS_MAX and more than GROWTH_MAX times the string a
sixteenth as long. What goes on for longer than KILLED_AFTER_SECONDS ends the child by its processor
limit, and counts as slow.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import regex

LENGTH = 16_000
SHARE = 16
COST_SECONDS_MAX = 0.25
GROWTH_MAX = 64
KILLED_AFTER_SECONDS = 1
_TRIES = 3
# How much of a string is tried first, and what costs less than that then is far from
# COST_SECONDS_MAX at the whole, though its time be squared. The second: of a sentence's length.
_FIRST = (SHARE, 0.0002)
_FIRST_OF_SHORT = (4, 0.003)
_SUFFIXES = ("\x01", "x")
_FIXED = (
    "a", "A", "7", " ", "\n", "\t", ".", "!", "?", "…", "！", "。", "-", "_", "/", "'", '"', "“",
    "(", "[", "<", "{", "%", "@", ":", "=", "中", "é", "a ", "A ", "a.", "7.", ". ", "! ", "\n ",
    " \n", "a:\n", "A, ", "7-", "<a ", "<!--", "<!---->", "\\", "a@a.", "&", "http://",
)  # fmt: skip
_FEW = ("a", "A", " ", ".", ",", "a ", "A ", "A, ", "7-")  # for what reads only short texts
_MEMBERS = "aAx7 \n.!-_/'\"“:中é@<#,\x01"
_CATEGORIES = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_LOOP_MIN = 100  # a loop that ends sooner costs a constant


@dataclass(frozen=True, slots=True)
class Probed:
    """A pattern, how the tree asks it (a method of its), and the longest string that it ever
    sees.
    """

    name: str
    source: str
    flags: int
    of_bytes: bool = False
    of_regex: bool = False
    method: str = "finditer"
    length: int = LENGTH  # what sees no more than a sentence is held against fewer strings

    @classmethod
    def of(cls, name: str, pattern: Any, method: str = "finditer", length: int = LENGTH) -> Probed:
        of_bytes = isinstance(pattern.pattern, bytes)
        source = pattern.pattern.decode("latin-1") if of_bytes else pattern.pattern
        return cls(
            name,
            source,
            pattern.flags,
            of_bytes,
            not isinstance(pattern, re.Pattern),
            method,
            length,
        )

    def compiled(self) -> Any:
        source = self.source.encode("latin-1") if self.of_bytes else self.source
        return (regex if self.of_regex else re).compile(source, self.flags)


def slow(patterns: Sequence[Probed]) -> dict[str, str]:
    """name -> what makes it slow, of those that are."""
    found: dict[str, str] = {}
    left = list(patterns)
    while left:
        child = subprocess.run(
            [sys.executable, "-m", "tests.support.pumping"],
            input=json.dumps([astuple(one) for one in left]),
            capture_output=True,
            text=True,
            check=False,
        )
        told = [json.loads(line) for line in child.stdout.splitlines()]
        found |= {left[place].name: verdict for place, verdict in told if verdict != "begun"}
        at = told[-1][0] if told else 0
        if child.returncode == 0:
            return found
        if child.returncode >= 0 or not told:
            raise AssertionError(child.stderr)
        if at > 0:  # only a child that began with it is evidence against a pattern
            left = left[at:]
            continue
        found[left[0].name] = f"goes on for more than {KILLED_AFTER_SECONDS} s"
        left = left[1:]
    return found


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for place, fields in enumerate(json.load(sys.stdin)):
        print(json.dumps([place, "begun"]), flush=True)
        verdict = _verdict(Probed(*fields))
        if verdict is not None:
            print(json.dumps([place, verdict]), flush=True)


def _verdict(probed: Probed) -> str | None:
    ask = getattr(probed.compiled(), probed.method)
    share, passed_seconds = _FIRST if probed.length == LENGTH else _FIRST_OF_SHORT
    for prefix, unit, suffix in _attacks(probed):
        resource.setrlimit(
            resource.RLIMIT_CPU,
            (int(time.process_time()) + KILLED_AFTER_SECONDS + 1, resource.RLIM_INFINITY),
        )
        first, short, long = (
            _pumped(probed, prefix, unit, suffix, probed.length // part)
            for part in (share, SHARE, 1)
        )
        if _cost(ask, first) < passed_seconds:
            continue
        cost, tries = _cost(ask, long), 1
        while cost > COST_SECONDS_MAX and tries < _TRIES:
            cost, tries = min(cost, _cost(ask, long)), tries + 1
        if cost > COST_SECONDS_MAX and cost > GROWTH_MAX * min(
            _cost(ask, short) for _ in range(_TRIES)
        ):
            return (
                f"{cost:.2f} s for {prefix!r} + {unit!r} × {probed.length // len(unit)} + "
                f"{suffix!r}"
            )
    return None


def _pumped(probed: Probed, prefix: str, unit: str, suffix: str, length: int) -> Any:
    text = prefix + unit * (length // len(unit)) + suffix
    return text.encode("utf-8", "replace") if probed.of_bytes else text


def _cost(ask: Any, text: Any) -> float:
    begun = time.thread_time()
    found = ask(text)
    if found is not None and not hasattr(found, "span"):
        for _ in found:
            pass
    return time.thread_time() - begun


def _attacks(probed: Probed) -> Iterator[tuple[str, str, str]]:
    """(prefix, unit, suffix), each once."""
    is_short = probed.length < LENGTH
    pairs = dict.fromkeys(("", unit) for unit in (_FEW if is_short else _FIXED))
    tree = _parsed(probed)
    if tree is not None:
        chance = random.Random(7)
        for _ in range(1 if is_short else 3):
            loops = [loop for loop in _loops(tree, "", chance) if loop[1]]
            pairs |= dict.fromkeys([*loops, *(("", prefix + unit) for prefix, unit in loops)])
    for prefix, unit in pairs:
        for suffix in _SUFFIXES[:1] if is_short else _SUFFIXES:
            yield prefix, unit, suffix


def _parsed(probed: Probed) -> Any:
    """The parse tree; of the other engine's patterns as far as this one's parser can read them."""
    source = probed.source
    if probed.of_regex:
        source = re.sub(r"\\p\{\w+\}", "a-z", source)
        source = re.sub(r"(?<!\[)\\X|(?<!\[)a-z(?![^\[]*\])", "[a-z]", source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re._parser.parse(
                source, probed.flags & (re.IGNORECASE | re.DOTALL | re.VERBOSE | re.MULTILINE)
            )
    except re.error:
        return None


def _loops(tree: Any, before: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """(what leads to it, one round) of every loop that has no small bound."""
    for op, argument in tree:
        name = str(op)
        if name in _REPEATS:
            _, most, body = argument
            if most is re._constants.MAXREPEAT or most >= _LOOP_MIN:
                yield before, _example(body, chance)
            yield from _loops(body, before, chance)
        elif name == "SUBPATTERN":
            yield from _loops(argument[-1], before, chance)
        elif name == "ATOMIC_GROUP":
            yield from _loops(argument, before, chance)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _loops(branch, before, chance)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _loops(argument[1], before, chance)
        before += _example([(op, argument)], chance)


def _example(tree: Any, chance: random.Random) -> str:
    """A string that the tree probably matches."""
    made = ""
    for op, argument in tree:
        name = str(op)
        if name == "LITERAL":
            made += chr(argument)
        elif name == "NOT_LITERAL":
            made += chance.choice([char for char in _MEMBERS if ord(char) != argument])
        elif name == "ANY":
            made += chance.choice(_MEMBERS)
        elif name == "IN":
            made += chance.choice(
                [char for char in _candidates(argument) if _is_member(char, argument)] or [""]
            )
        elif name in _REPEATS:
            least, most, body = argument
            for _ in range(least if least else chance.randint(0, min(int(most), 1))):
                made += _example(body, chance)
        elif name == "SUBPATTERN":
            made += _example(argument[-1], chance)
        elif name == "ATOMIC_GROUP":
            made += _example(argument, chance)
        elif name == "BRANCH":
            made += _example(chance.choice(argument[1]), chance)
    return made


def _candidates(members: Any) -> list[str]:
    own = [chr(value) for op, value in members if str(op) == "LITERAL"]
    return [
        *_MEMBERS,
        *own,
        *(chr(low) for op, (low, _) in ((o, v) for o, v in members if str(o) == "RANGE")),
    ]


def _is_member(char: str, members: Any) -> bool:
    negated = bool(members) and str(members[0][0]) == "NEGATE"
    return negated != any(_holds(char, str(op), value) for op, value in members)


def _holds(char: str, op: str, value: Any) -> bool:
    if op == "LITERAL":
        return ord(char) == value
    if op == "RANGE":
        return value[0] <= ord(char) <= value[1]
    if op == "CATEGORY":
        name = str(value).removeprefix("CATEGORY_")
        return _CATEGORIES[name.removeprefix("NOT_")](char) != name.startswith("NOT_")
    return False


if __name__ == "__main__":
    _main()
