"""What agents may record: corrections, decisions, and how those turned out."""

from __future__ import annotations

from runtime.api.tools import Tool

TOOLS = (
    Tool(
        "add_correction",
        "corrections.create",
        "Record what is right when the user corrects you. With memory_id the correction "
        "supersedes that memory.",
        (
            "corrected_content",
            "correction_type",
            "original_content",
            "memory_id",
            "context",
            "user_id",
            "agent_id",
            "collection_id",
        ),
        place=10,
    ),
    Tool(
        "record_decision",
        "learning.decide",
        "Choose among actions by what is known of their outcomes, or record a choice of your "
        "own: mode observe, chosen_action_key, and "
        "propensity_unknown. Keep decision_id for record_outcome.",
        (
            "policy_key",
            "candidates",
            "mode",
            "chosen_action_key",
            "action_probability",
            "propensity_unknown",
            "baseline_action_key",
            "context",
            "user_id",
            "collection_id",
        ),
        place=11,
    ),
    Tool(
        "record_outcome",
        "learning.report",
        "Say how a recorded decision turned out, with one of success, reward and observations.",
        ("success", "reward", "observations"),
        id_argument="decision_id",
        place=12,
    ),
)
