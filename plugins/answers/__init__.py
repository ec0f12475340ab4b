"""Answers: a question to the memories, answered with quotations that can be checked.

A flow: it searches as its caller, looks a second time and wider when the first results are not
convincing, and then answers:

    llm         the model writes an answer and names what it rests on; each quotation is looked up
                in its memory, and a claim that nothing cited bears out does not stand
    extractive  without a model, or when it fails: the best sentence of the best memory, as it was
                written; citations add those of the next ones

Invariants: each citation is `content[start:end]` of its memory; an answer has a citation; where
neither can be had the answer is null and `abstain_recommended` says so. An abstention is a success:
200.

Low confidence means different things to the two engines. The extractive one has nobody to judge
whether a sentence answers, so it abstains where the search does, below `answers.confidence_min`,
and where no sentence shows the kind of thing that is asked for: "when" needs a time, "how many" a
number, "where" a place (kinds.py). A model reads what was found and may say that it holds no
answer.
"""

from __future__ import annotations

from plugins.answers.limits import ANSWER_MEMORY_TOKENS_MAX
from plugins.answers.operations import OPERATIONS
from plugins.answers.prompt import RECALLED, Block, fenced, with_successors
from plugins.answers.quotes import best_quotes
from plugins.answers.settings import AnswersSettings
from plugins.answers.tools import TOOLS
from runtime.api.plugin import Plugin

__all__ = [
    "ANSWER_MEMORY_TOKENS_MAX",
    "RECALLED",
    "Block",
    "best_quotes",
    "fenced",
    "plugin",
    "with_successors",
]

plugin = Plugin(
    name="answers",
    requires=("memories", "search"),
    operations=OPERATIONS,
    tools=TOOLS,
    settings={"answers": AnswersSettings},
)
