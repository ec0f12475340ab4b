"""Whether an English sentence looks ahead of a time that it names, or back: "the plumber comes on
Monday" means the Monday to come, "the plumber came on Monday" the one that was.

The verb that tells is the last one before the time, else the first one after it, in the same
sentence. Words that are names of things as often as verbs ("call", "plan") tell nothing, nor do
polite forms ("can you tell me", "do you remember").
"""

from __future__ import annotations

import re

CHARS_BEFORE, CHARS_AFTER = 200, 100  # of a sentence that are read on either side of a time

AHEAD, UNTOLD, BACK = 1, 0, -1

# After a name "'s" makes no verb: "Anna's meeting".
_IS = (
    r"(?:is|are|am|isn['’]t|aren['’]t|(?:it|he|she|that|who|what|when|where|there|here)['’]s"
    r"|(?:we|you|they)['’]re|i['’]m)"
)
_BARE = r"(?:come|arrive|leave|begin|go|meet|see|depart|fly|get)"
_AFTER_DO = rf"(?:{_BARE}|have|do|need|start|open|close|end|return|move|visit|take)"
_VERB = re.compile(
    rf"""
      (?P<ahead>\b(?:will|won['’]t|shall|must|tomorrow)\b | (?<=\w)['’]ll\b
      | \bhaving\s+to\b
      | (?<!\byou\ )\b(?:have|has)\s+(?:to|an?|my|his|her|our|their)\b
      | \b(?:have|has)\s*$
      | \b(?:wants?|needs?|plans?|hopes?|intends?|expects?)\s+to\b
      | \b{_IS}\s+(?:\w+\s+){{0,4}}?
        (?:(?!\w*thing\b|morning|evening)\w{{2,}}ing|due|scheduled|planned|expected|booked|supposed|invited)\b
      | \b{_IS}(?:\s+not)?\s*$
      | \bdo(?:es|n['’]t|esn['’]t)?\s+(?!you\b)(?:[\w'’]+\s+){{1,4}}?{_AFTER_DO}\b
      | \b(?:comes|arrives|leaves|starts|begins|opens|closes|visits|returns|flies|goes|travels
        |meets|moves|sees|gets|departs|expires|lands|delivers|ends)\b)
    | (?P<bare>\b{_BARE}\b)
    | (?P<back>\b(?:was|were|did|had|wasn['’]t|weren['’]t|didn['’]t|hadn['’]t)\b
      | \b(?:have|has|hasn['’]t|haven['’]t)\b | (?<=\w)['’](?:ve|d)\b
      | \b(?!need|indeed|speed|hundred)\w{{2,}}ed\b
      | \b(?:came|went|saw|said|told|met|got|gave|took|made|left|bought|brought|thought|caught|ate
        |drank|ran|began|flew|drove|wrote|spoke|broke|spent|slept|fell|found|felt|heard|held|kept
        |knew|lost|paid|sold|sent|sat|stood|taught|wore|won|built|chose|forgot|swam|sang|rode|woke
        |threw|grew|led|lent|hid|fed|understood)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE_ENDS = re.compile(r"[.!?;\n]")


def tense_around(text: str, begin: int, end: int) -> int:
    """AHEAD, BACK, or UNTOLD: how the sentence looks at what it names from `begin` to `end`."""
    before = _SENTENCE_ENDS.split(text[max(begin - CHARS_BEFORE, 0) : begin])[-1]
    after = _SENTENCE_ENDS.split(text[end : end + CHARS_AFTER])[0]
    found = UNTOLD
    for match in _VERB.finditer(before):
        # "did he come": a bare verb tells nothing beside one that was met.
        if not (match["bare"] and found):
            found = BACK if match["back"] else AHEAD
    if found:
        return found
    verb = _VERB.search(after)
    return UNTOLD if verb is None else BACK if verb["back"] else AHEAD
