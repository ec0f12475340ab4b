"""Bounds of profiles and of the dialogue about them, with the unit at the end of each name."""

from __future__ import annotations

from runtime.settings import Kept

PROFILE_REFRESH_DELAY_MS = 200
PROFILE_MEMORIES_PER_STEP = 100
FACTS_PER_PROFILE_MAX = 500
FACT_EVIDENCE_MEMORIES_MAX = 20
FACT_VALUE_CHARS_MAX = 500
GIVEN_FACTS_MAX = 100
BIO_CHARS_MAX = 2_000
DIALOGUE_TURNS_KEPT_MAX = 50
DIALOGUE_TURN_CHARS_MAX = 4_000
DIALOGUE_HYPOTHESES_MAX = 20

# --- what an account may keep, by its tier --------------------------------------------------------
PROFILES_KEPT = Kept(
    "profiles",
    "Profiles of end users, where the API is asked for a new one, that an account of the tier "
    "{tier} may keep",
    {"free": 1_000, "starter": 10_000, "pro": 50_000, "scale": 100_000},
    place=40,
)
