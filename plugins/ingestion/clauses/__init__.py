"""Facts of English from the trees of its sentences.

    tree.py        a sentence with its words and what depends on them
    mending.py     what readings get wrong of what people type
    stating.py     whether a clause is stated, by itself or as what another one takes for given
    quoting.py     titles in quotation marks, and other quotations
    clauses.py     clauses: who is said to do, be or have what
    denying.py     how far a "not" reaches
    people.py      who is meant, by a name, a relation or a pronoun
    predicates.py  what verbs say under the names of facts.PREDICATES, and which end what
    endings.py     which things are over, or are at another time from now on
    parting.py     who is no longer with whom, or no longer has their work
    replacing.py   what took the place of what
    ordering.py    what is asked for once and for all: "always answer in bullet points"
    schooling.py   where somebody learns
    having.py      what somebody has by what they call it: "my car"
    claims.py      clauses as facts

A clause is read where it is stated: no question, command, wish, condition, dream or quotation; one
inside of another where that takes it for given ("I'm glad I sold it", "my sister, who …"). What was
so once, told for the sake of another clause ("when I moved"), happened, and says nothing of now.
What is denied at times, so much or with somebody alone is neither denied nor over; a change that is
told in the present for a later time is a plan. Its subject is the speaker, somebody named,
somebody's relative or thing; "he" and "she" are the one person of late whom they agree with; "it",
"they" and "you" are nobody, and a clause about them makes no fact.
A fact is as sure as the least sure arc that it was read by, and dropped below CERTAINTY_MIN.
"""

from plugins.ingestion.clauses.claims import CERTAINTY_MIN, read_facts
from plugins.ingestion.clauses.people import Talk

__all__ = ["CERTAINTY_MIN", "Talk", "read_facts"]
