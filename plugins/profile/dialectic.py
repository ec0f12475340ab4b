"""Dialectic: talking about an end user with what is known of them.

A flow of the profile plugin. Its `load` reads the profile and the session, it searches the user's
memories as its caller, and answers with a model if there is one; `finish` keeps the turn and the
hypotheses in the session. Without a model the answer is what the profile and the best memory say,
word for word.

A hypothesis is a guess about the user with the memories behind it; one without any is dropped,
whoever made it. Hypotheses live in their session: a later turn may strengthen them, weaken them, or
leave them to be forgotten.

The reasoning level says how many memories are read and how much is thought about them; it never
invents more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from pydantic import AliasChoices, BaseModel, Field, model_validator

from plugins.answers import ANSWER_MEMORY_TOKENS_MAX, best_quotes, fenced, with_successors
from plugins.memories import ScopeName
from plugins.profile.limits import (
    DIALOGUE_HYPOTHESES_MAX,
    DIALOGUE_TURN_CHARS_MAX,
    DIALOGUE_TURNS_KEPT_MAX,
)
from plugins.profile.store import (
    DIALOGUES,
    DialogueRow,
    Hypothesis,
    Turn,
    keep_dialogue,
    read_profile,
    readable_part,
    session_key,
    since_of,
)
from plugins.search import QUERY_CHARS_MAX
from runtime import ids
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Call, Reply, View
from runtime.api.steps import Steps
from runtime.errors import NotFound, ValidationFailed
from runtime.inference import CompletionFailed, LanguageModel, Models
from storage.text import analyze, query_terms

Level = Literal["minimal", "low", "medium", "high"]
MEMORIES_READ = {"minimal": 3, "low": 8, "medium": 15, "high": 30}
TOKENS_WRITTEN = {"minimal": 200, "low": 400, "medium": 800, "high": 1_600}
TURNS_SHOWN = 10
SESSION_RANDOM = 2**31  # a counter no handler's own ids reach
HALF_LIFE_TURNS = (
    0.9  # what is left of a hypothesis' confidence after a turn that says nothing of it
)
CONFIDENCE_FORGOTTEN = 0.1
CONFIDENT = 0.4  # query_confidence from which quotations answer, as in answers.confidence_min


class DialecticBody(Body):
    user_message: str = Field(
        validation_alias=AliasChoices("user_message", "message", "question"), min_length=1,
        max_length=QUERY_CHARS_MAX,
        description="What to talk about; also accepted as `message` or `question`.",
    )  # fmt: skip
    session_id: ScopeName | None = Field(
        default=None,
        description="Ours, or any string; new when absent.",
    )
    user_id: ScopeName | None = Field(
        default=None,
        description="The end user talked about.",
    )
    reasoning_level: Level = Field(
        default="low", description="How many memories are read and how much is thought about them."
    )

    @model_validator(mode="after")
    def _is_not_blank(self) -> DialecticBody:
        if not self.user_message.strip():
            raise ValidationFailed.at(
                ("body", "user_message"), "must contain more than white space", "string_too_short"
            )
        return self


class HypothesisView(View):
    statement: str
    confidence: float = Field(description="0 to 1.")
    evidence_memory_ids: list[str]


class DialecticReply(View):
    session_id: str
    assistant_message: str
    engine: Literal["llm", "extractive"]
    evidence_memory_ids: list[str] = Field(description="Memories the message rests on.")
    hypotheses: list[HypothesisView] = Field(
        description="Guesses about the user so far, most confident first."
    )
    follow_up_question: str | None = Field(
        description="What would be worth asking the user, if anything."
    )
    abstain_recommended: bool = Field(description="Nothing stored supports an answer.")
    degraded: bool = Field(
        description="Whether the language model or a channel of the search was missing."
    )


class Guess(BaseModel):
    statement: str = Field(description="One sentence about the user.")
    confidence: float = Field(ge=0, le=1)
    notes: list[int] = Field(description="Numbers of the notes that support it.")


class Thought(BaseModel):
    """What the model is asked for."""

    assistant_message: str | None = Field(
        description="The answer, or null when the notes and the profile do not hold one."
    )
    notes: list[int] = Field(
        default_factory=list, description="Numbers of the notes the answer rests on."
    )
    hypotheses: list[Guess] = Field(default_factory=list, max_length=DIALOGUE_HYPOTHESES_MAX)
    follow_up_question: str | None = None


# --- begin ----------------------------------------------------------------------------------------


def load(ctx: ReadContext, body: DialecticBody) -> dict[str, Any]:
    """The profile and the session. A session of ours that is not there (any more) is 404."""
    session_id, dialogue = body.session_id, None
    if session_id is None:
        session_id = ids.make_id(
            "ses", ctx.now, ctx.principal.tag, ids.derived_random(ctx.call.seed, SESSION_RANDOM, 10)
        )
    else:
        dialogue = ctx[DIALOGUES].get(*session_key(ctx, body.user_id, session_id))
        if dialogue is None and ids.id_tag("ses", session_id) is not None:
            ctx.check_id("ses", session_id)
            raise NotFound("There is no session with this id.")
    kept = readable_part(ctx, dialogue or DialogueRow(session_id))
    return {
        "profile": read_profile(ctx, body.user_id),
        "dialogue": msgspec.to_builtins(kept),
        "since": since_of(ctx, body.user_id),
    }


# --- the flow -------------------------------------------------------------------------------------


async def converse(call: Call, steps: Steps, models: Models) -> Reply:
    """Answer one turn, by the model or by quotations, with the hypotheses behind it."""
    body: DialecticBody = call.body
    profile = call.loaded["profile"]
    dialogue = msgspec.convert(call.loaded["dialogue"], DialogueRow)
    search = {
        "query": body.user_message,
        "user_id": body.user_id,
        "limit": MEMORIES_READ[body.reasoning_level],
        "relevance": "all",
        "view": "compact",
    }
    found = await steps.run("search.search", search)
    found["results"] = with_successors(found["results"])
    said, degraded = None, bool(found["degraded"])
    if models.language_model is not None:
        steps.outcome = {}  # the turn is paid for, also where the client leaves before it is there
        try:
            said = await think(call, found["results"], dialogue, models.language_model)
        except CompletionFailed:
            degraded = True
    if said is None:
        said = await asyncio.to_thread(recite, body.user_message, found, profile)
    dialogue.hypotheses = weighed(dialogue.hypotheses, said["guesses"])
    guessed = [memory_id for guess in said["guesses"] for memory_id in guess.memory_ids]
    dialogue.turns.append(
        Turn(
            body.user_message[:DIALOGUE_TURN_CHARS_MAX],
            said["message"][:DIALOGUE_TURN_CHARS_MAX],
            list(dict.fromkeys([*said["memory_ids"], *said["told"], *guessed])),
        )
    )
    reply = {
        "session_id": dialogue.session_id,
        "assistant_message": said["message"],
        "engine": said["engine"],
        "evidence_memory_ids": said["memory_ids"],
        "hypotheses": [
            {
                "statement": one.statement,
                "confidence": round(one.confidence, 4),
                "evidence_memory_ids": one.memory_ids,
            }
            for one in dialogue.hypotheses
        ],
        "follow_up_question": said["follow_up"],
        "abstain_recommended": not said["memory_ids"] and not said["given"],
        "degraded": degraded,
    }
    return Reply(
        200,
        reply,
        outcome={"dialogue": msgspec.to_builtins(dialogue), "since": call.loaded["since"]},
    )


async def think(
    call: Call, hits: Sequence[Mapping[str, Any]], dialogue: DialogueRow, model: LanguageModel
) -> dict[str, Any] | None:
    """The model's turn; None when it has nothing to say that rests on something. Raises
    CompletionFailed.
    """
    body: DialecticBody = call.body
    profile = call.loaded["profile"]
    facts = [
        {"profile": fact["key"], "value": fact["value"]}
        for fact in (*profile["static"], *profile["dynamic"])
    ] + [
        {"former_profile": fact["key"], "value": fact["value"]}
        for section in profile["sections"]
        for fact in section["former"]
    ]
    guesses = [
        {"earlier_hypothesis": one.statement, "confidence": one.confidence}
        for one in dialogue.hypotheses
    ]
    block = fenced(
        hits, call.seed, ANSWER_MEMORY_TOKENS_MAX, notes=[*facts, *guesses], numbered=True
    )
    instruction = (
        "You help an application to understand one of its users. Answer from the profile and the "
        "numbered notes below and from nothing "
        "else; name the notes your answer rests on. State hypotheses about the user only with "
        "notes that support them, and repeat "
        "earlier ones that still hold. When nothing below answers, answer null and ask a question "
        "worth asking the user.\n\n"
    )
    talk = [{"role": "system", "content": instruction + block.text}]
    for turn in dialogue.turns[-TURNS_SHOWN:]:
        talk += [
            {"role": "user", "content": turn.asked},
            {"role": "assistant", "content": turn.answered},
        ]
    talk.append({"role": "user", "content": body.user_message})
    thought = (
        await model.complete(talk, schema=Thought, max_tokens=TOKENS_WRITTEN[body.reasoning_level])
    ).parsed
    memory_ids = _named(thought.notes, hits)
    given = bool(facts)
    if (
        thought.assistant_message is None
        or not thought.assistant_message.strip()
        or not (memory_ids or given)
    ):
        return None
    supported = [
        (guess.statement, guess.confidence, _named(guess.notes, hits))
        for guess in thought.hypotheses
    ]
    message = thought.assistant_message.strip()
    return {
        "engine": "llm",
        "message": message,
        "memory_ids": memory_ids,
        "told": _told(message, profile),
        "guesses": [
            Hypothesis(statement, confidence, named)
            for statement, confidence, named in supported
            if named and statement.strip()
        ],
        "follow_up": thought.follow_up_question,
        "given": given,
    }


def recite(question: str, found: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, Any]:
    """Answer without a model: the facts of the profile that the question is about, and the best
    sentence.
    """
    terms = frozenset(query_terms(question))
    facts = _asked_for(terms, [*profile["static"], *profile["dynamic"]])
    former = [fact for section in profile["sections"] for fact in section["former"]]
    over = _asked_for(terms, former)
    answers = not found["abstain_recommended"] and found["query_confidence"] >= CONFIDENT
    quotes = best_quotes(question, found["results"], 1) if answers else []
    lines = [f"{spoken(fact)}." for fact in facts]
    lines += [f"formerly {spoken(fact)}." for fact in over]
    lines += [
        f"{found['results'][quote.place]['occurred_at'][:10]}: “{quote.quote}”" for quote in quotes
    ]
    evidence = [memory_id for fact in (*facts, *over) for memory_id in fact["evidence_memory_ids"]]
    evidence += [found["results"][quote.place]["id"] for quote in quotes]
    known = [
        (spoken(fact), fact["confidence"], fact["evidence_memory_ids"])
        for fact in facts
        if fact["evidence_memory_ids"]
    ]
    return {
        "engine": "extractive",
        "message": "\n".join(lines) or "Nothing that is stored answers this.",
        "memory_ids": list(dict.fromkeys(evidence)),
        "told": [],
        "guesses": [Hypothesis(*one) for one in known],
        "follow_up": None,
        "given": bool(facts),
    }


def _asked_for(terms: frozenset[str], facts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [fact for fact in facts if not terms.isdisjoint(analyze(spoken(fact)))]


def spoken(fact: Mapping[str, Any]) -> str:
    """ "lives_in", "Lisbon" -> "lives in: Lisbon"."""
    return f"{fact['key'].replace('_', ' ').replace('.', ' ')}: {fact['value']}"


def weighed(before: Sequence[Hypothesis], now: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Hypotheses after a turn: repeated ones take the new word and all evidence, others fade, the
    weakest are forgotten.
    """
    said = {one.statement.strip().casefold(): one for one in now}
    kept = []
    for one in before:
        again = said.pop(one.statement.strip().casefold(), None)
        if again is None:
            kept.append(Hypothesis(one.statement, one.confidence * HALF_LIFE_TURNS, one.memory_ids))
        else:
            kept.append(
                Hypothesis(
                    one.statement,
                    again.confidence,
                    list(dict.fromkeys([*again.memory_ids, *one.memory_ids])),
                )
            )
    strong = [one for one in (*kept, *said.values()) if one.confidence >= CONFIDENCE_FORGOTTEN]
    return sorted(strong, key=lambda one: one.confidence, reverse=True)[:DIALOGUE_HYPOTHESES_MAX]


def _named(notes: Sequence[int], hits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Note numbers -> memory ids; numbers nobody has are dropped."""
    return list(
        dict.fromkeys(hits[number - 1]["id"] for number in notes if 0 < number <= len(hits))
    )


def _told(message: str, profile: Mapping[str, Any]) -> list[str]:
    """The memories behind the facts that a model's answer repeats: it names notes, but no facts."""
    former = [fact for section in profile["sections"] for fact in section["former"]]
    return [
        memory_id
        for fact in (*profile["static"], *profile["dynamic"], *former)
        if fact["value"].casefold() in message.casefold()
        for memory_id in fact["evidence_memory_ids"]
    ]


# --- end ------------------------------------------------------------------------------------------


def finish(ctx: WriteContext, body: DialecticBody) -> None:
    """Keep the turn, unless its client left before there was one, or the profile or a memory that
    it rests on was deleted meanwhile. One that ended beside it in the same session keeps its place.
    """
    if "dialogue" not in ctx.prepared or since_of(ctx, body.user_id) != ctx.prepared["since"]:
        return
    dialogue = msgspec.convert(ctx.prepared["dialogue"], DialogueRow)
    key = session_key(ctx, body.user_id, dialogue.session_id)
    row = ctx[DIALOGUES].get(*key) or DialogueRow(dialogue.session_id)
    last = DialogueRow(dialogue.session_id, dialogue.turns[-1:], dialogue.hypotheses)
    ended = readable_part(ctx, last)
    row.turns = [*row.turns, *ended.turns][-DIALOGUE_TURNS_KEPT_MAX:]
    row.hypotheses, row.updated_at = ended.hypotheses, ctx.now
    keep_dialogue(ctx, key, row)
