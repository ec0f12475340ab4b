"""Search: from a question to the memories that answer it.

One snapshot serves the whole request. Channels propose candidates inside the *universe*, the bitmap
of memories that are live and pass every filter, so that what a filter excludes is never scored:

    lexical    the best by BM25
    semantic   the nearest vectors, of memories and of the passages of long ones
    …          retrievers of other plugins, declared in the registry

A hybrid search adds their session neighbours, which may hold the answer to words beside them. All
are then ranked by plugins/search/ranking.py, how rare a word is being judged within the universe;
the most promising hundred also by late interaction, word against word, which `fast` leaves out.
They are hydrated from the same snapshot. The query's embedding is made before, outside any
snapshot; when it is late or its backend is down, the search goes on lexically and says `degraded`.

Honest answers: scores are absolute and nothing is padded out to `limit`. A result stands when it or
a session neighbour shares a word with the query, or when it is near enough in meaning, as a whole
or word by word, and beside such a result one whose score comes near to its; the others are dropped,
and when nothing stands the answer is `no_match`. A caller may ask for the weak ones too; they then
come flagged. Confidence is a logistic curve over the best
score, how rare the words are that the best result shares with the query, and how many memories were
searched; it falls when what is asked of one speaker fits another one better. Abstaining is
recommended where there is little of it (plugins/search/judging.py).

    search.py           the plain search, and memories similar to one
    advanced.py         the same with what a caller adds to it: boosts.py, facets.py, diversity.py
    context.py          what is found as one block for a prompt; layout.py writes it
    models.py           what requests and responses look like
    question.py         what a query asks apart from its embedding; dates.py finds its dates, and
                        days.py the memories that tell them in other spellings
    ranking.py          features and their weights; late_interaction.py has two of them
    judging.py          which results stand, confidence, abstaining
    learned_weights.py  what feedback added to the weights
    events.py           the event of a search
"""

from __future__ import annotations

from plugins.search import advanced, context, learned_weights, search
from plugins.search.dates import find_dates
from plugins.search.events import SEARCH_COMPLETED, completed
from plugins.search.learned_weights import (
    IMPORTANCE,
    RECENCY,
    recency,
    use_defaults,
    use_weights,
    version_in_use,
    weights_of,
)
from plugins.search.limits import QUERY_CHARS_MAX, SEARCH_ITEMS_DEFAULT, SEARCH_ITEMS_MAX
from plugins.search.models import (
    EXAMPLE_REPLY,
    SAFETY_CONTRACT,
    Grounding,
    SearchBody,
    SearchedMemories,
    SearchReply,
)
from plugins.search.search import reply_with
from plugins.search.settings import (
    PROFILES,
    RankingSettings,
    SearchSettings,
    ranking_profile,
)
from plugins.search.tools import TOOLS
from plugins.search.universe import filtered
from runtime.api.plugin import Plugin

__all__ = [
    "EXAMPLE_REPLY",
    "IMPORTANCE",
    "QUERY_CHARS_MAX",
    "RECENCY",
    "SAFETY_CONTRACT",
    "SEARCH_ITEMS_DEFAULT",
    "SEARCH_ITEMS_MAX",
    "Grounding",
    "RankingSettings",
    "SearchBody",
    "SearchReply",
    "SearchSettings",
    "SearchedMemories",
    "completed",
    "filtered",
    "find_dates",
    "plugin",
    "ranking_profile",
    "recency",
    "reply_with",
    "use_defaults",
    "use_weights",
    "version_in_use",
    "weights_of",
]

plugin = Plugin(
    name="search",
    requires=("memories", "collections"),
    operations=(*search.OPERATIONS, *advanced.OPERATIONS, *context.OPERATIONS),
    tools=TOOLS,
    tables=learned_weights.TABLES,
    events=(SEARCH_COMPLETED,),
    settings={"search": SearchSettings, **PROFILES},
    rates={"search": lambda settings: settings.limits.search_per_minute},
    erase=learned_weights.erase,
    export=learned_weights.export,
)
