"""What outcome memory looks like on the wire: decisions, outcomes, evidence, evaluation.

Rules that one field alone cannot say are checked here, before any work: who may name the chosen
action, what a propensity must come with, that probabilities are a distribution over the candidates,
and that an outcome is said in one of its three ways.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field, StrictBool, field_validator, model_validator
from pydantic_core import PydanticCustomError

from plugins.learning import limits
from plugins.memories import ScopeName
from runtime.api.operation import Body, Query, View
from runtime.errors import ValidationFailed
from runtime.limits import DESCRIPTION_CHARS_MAX, ID_CHARS_MAX, IDEMPOTENCY_KEY_CHARS_MAX

SUM_SLACK = 1e-6
PROPENSITY_MIN = 1e-9  # what is less likely is never seen, and its weight would drown everything
REWARD_MAX = 1e9
MODES = ("auto", "observe", "recommend", "explore", "shadow")
BEHAVIOUR_MODES = ("observe", "shadow")  # the caller has acted already, or acts by itself


def small_context(context: dict[str, Any]) -> dict[str, Any]:
    """The context, if it is at most 16 KiB of JSON."""
    try:
        size = len(orjson.dumps(context))
    except orjson.JSONEncodeError:
        raise PydanticCustomError(
            "context", "must hold JSON values only, integers of at most 64 bits"
        ) from None
    if size > limits.CONTEXT_BYTES_MAX:
        raise PydanticCustomError("context", "must be at most 16 KiB of JSON")
    return context


def parsed_context(text: str | None) -> dict[str, Any] | None:
    """A context given as JSON text in a query string. Raises ValidationFailed unless it is an
    object.
    """
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ValidationFailed.at(("query", "context"), "must be a JSON object", "json_type")
    return value


PolicyKey = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$",
        description="Which policy the decision belongs to, such as `support.refund`.",
    ),
]
ActionKey = Annotated[
    str,
    Field(min_length=1, max_length=limits.ACTION_KEY_CHARS_MAX, description="Name of an action."),
]
MetricKey = Annotated[
    str,
    Field(min_length=1, max_length=limits.METRIC_KEY_CHARS_MAX, description="Name of a metric."),
]
CollectionId = Annotated[str, Field(min_length=1, max_length=ID_CHARS_MAX)]
BodyKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=IDEMPOTENCY_KEY_CHARS_MAX,
        description="As the Idempotency-Key header, which wins.",
    ),
]
Context = Annotated[
    dict[str, Any],
    Field(description="What the decision depends on; at most 16 KiB."),
    AfterValidator(small_context),
]
Probability = Annotated[float, Field(strict=True, ge=PROPENSITY_MIN, le=1)]

# --- decisions ------------------------------------------------------------------------------------


class Candidate(Body):
    action_key: ActionKey
    description: str | None = Field(
        default=None, max_length=DESCRIPTION_CHARS_MAX, description="What the action does."
    )
    features: Context | None = Field(
        default=None, description="What is known of the action; kept, not interpreted."
    )
    memory_ids: list[Annotated[str, Field(min_length=1, max_length=ID_CHARS_MAX)]] | None = Field(
        default=None,
        max_length=limits.CANDIDATE_MEMORIES_MAX,
        description="Memories that speak for it.",
    )


class NewDecision(Body):
    policy_key: PolicyKey
    candidates: list[Candidate] = Field(
        min_length=1,
        max_length=limits.CANDIDATES_MAX,
        description="The actions to choose from, each with a key of its own.",
    )
    context: Context = Field(default_factory=dict)
    mode: Literal["auto", "observe", "recommend", "explore", "shadow"] = Field(
        default="auto",
        description=(
            "auto: the service draws, from the baseline while there is little evidence. explore: "
            "it draws from the evidence in any case. recommend: it takes the best by the "
            "evidence. observe: it records what you chose. shadow: you act by the baseline (or "
            "by chosen_action_key), and it notes what it would have recommended."
        ),
    )
    baseline_action_key: ActionKey | None = Field(
        default=None, description="The candidate to take without evidence."
    )
    chosen_action_key: ActionKey | None = Field(
        default=None, description="What you chose; for observe (required) and shadow."
    )
    action_probability: Probability | None = Field(
        default=None, description="How likely you were to choose it."
    )
    behavior_probabilities: dict[str, Annotated[float, Field(strict=True, ge=0, le=1)]] | None = (
        Field(
            default=None, description="How likely you were to choose each candidate; they sum to 1."
        )
    )
    propensity_unknown: StrictBool = Field(
        default=False,
        description="You cannot say how likely the choice was. It then proves nothing.",
    )
    exploration_rate: float | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=0.2,
        description="Share of this choice that is drawn evenly. Default: the setting; 0 for "
        "recommend.",
    )
    reward_range: (
        Annotated[
            list[Annotated[float, Field(strict=True, ge=-REWARD_MAX, le=REWARD_MAX)]],
            Field(min_length=2, max_length=2),
        ]
        | None
    ) = Field(
        default=None,
        description=(
            "Least and greatest reward there can be. Default: 0 to 1 for success, −1 to 1 for "
            "reward."
        ),
    )
    metric_weights: (
        dict[MetricKey, Annotated[float, Field(strict=True, ge=0, le=1_000_000)]] | None
    ) = Field(
        default=None,
        max_length=limits.OBSERVATIONS_PER_CALL_MAX,
        description="Metric → weight in the composite reward. Default: all the same.",
    )
    collection_id: CollectionId | None = Field(
        default=None, description="The collection it belongs to; none when absent."
    )
    user_id: ScopeName | None = Field(default=None, description="The caller's end user.")
    idempotency_key: BodyKey | None = None

    @field_validator("reward_range")
    @classmethod
    def _is_a_range(cls, bounds: list[float] | None) -> list[float] | None:
        if bounds is not None and bounds[1] - bounds[0] < 1 / REWARD_MAX:
            raise PydanticCustomError("reward_range", "must be two numbers, the lesser first")
        return bounds

    @model_validator(mode="after")
    def _fits_together(self) -> NewDecision:
        keys = [candidate.action_key for candidate in self.candidates]
        if len(set(keys)) < len(keys):
            raise ValidationFailed.at(("body", "candidates"), "must have different action_keys")
        for name in ("baseline_action_key", "chosen_action_key"):
            if getattr(self, name) is not None and getattr(self, name) not in keys:
                raise ValidationFailed.at(("body", name), "must be the action_key of a candidate")
        if self.mode in BEHAVIOUR_MODES:
            self._check_behaviour(keys)
            return self
        for name in ("chosen_action_key", "action_probability", "behavior_probabilities"):
            if getattr(self, name) is not None:
                raise ValidationFailed.at(
                    ("body", name), "goes with the modes observe and shadow only"
                )
        if self.propensity_unknown:
            raise ValidationFailed.at(
                ("body", "propensity_unknown"), "goes with the modes observe and shadow only"
            )
        return self

    def _check_behaviour(self, keys: list[str]) -> None:
        if self.chosen_action_key is None:
            if self.mode == "observe":
                raise ValidationFailed.at(
                    ("body", "chosen_action_key"), "is required in mode observe", "missing"
                )
            if self.baseline_action_key is None:
                raise ValidationFailed.at(
                    ("body", "baseline_action_key"),
                    "or chosen_action_key is required in mode shadow",
                    "missing",
                )
            return
        probabilities = self.behavior_probabilities
        if probabilities is not None:
            if not set(probabilities) <= set(keys):
                raise ValidationFailed.at(
                    ("body", "behavior_probabilities"), "must name candidates only"
                )
            if abs(sum(probabilities.values()) - 1) > SUM_SLACK:
                raise ValidationFailed.at(("body", "behavior_probabilities"), "must sum to 1")
            chance = probabilities.get(self.chosen_action_key, 0.0)
            if chance < PROPENSITY_MIN or (
                self.action_probability is not None
                and abs(chance - self.action_probability) > SUM_SLACK
            ):
                raise ValidationFailed.at(
                    ("body", "behavior_probabilities"),
                    "must give the chosen action its action_probability",
                )
        elif self.action_probability is None and len(keys) > 1 and not self.propensity_unknown:
            raise ValidationFailed.at(
                ("body", "action_probability"),
                "is required with several candidates, unless propensity_unknown is true",
                "missing",
            )


class Decided(View):
    decision_id: str = Field(description="The decision's id.")
    policy_key: str
    policy_version: int = Field(
        description="How often the policy's evidence had changed when the choice was made."
    )
    mode: Literal["auto", "observe", "recommend", "explore", "shadow"]
    chosen_action_key: str = Field(description="The action to take, or that was taken.")
    recommended_action_key: str = Field(description="The best action by the evidence at that time.")
    baseline_action_key: str | None
    used_baseline: bool = Field(description="Whether the choice came from the baseline.")
    action_probability: float | None = Field(
        description="How likely the chosen action was; null when unknown."
    )
    distribution: dict[str, float] = Field(
        description="Action → probability, as far as it is known; the choice was drawn from it."
    )
    propensity_source: Literal["server", "client", "unknown"]
    reason: str = Field(description="Why, in a sentence.")
    created_at: str
    replayed: bool = Field(description="Whether this answers a repeated Idempotency-Key.")
    authorizes_action: Literal[False] = Field(
        description="Always false: evidence informs an action, it does not permit one."
    )


class Outcome(View):
    observation_id: str
    metric_key: str
    value: float
    confidence: float | None = Field(
        description="How sure the source is, as reported; kept, not interpreted."
    )
    source: str | None
    is_final: bool
    corrects: str | None = Field(description="The observation it takes the place of.")
    at: str


class DecisionEvidence(Decided):
    context: dict[str, Any]
    candidates: list[dict[str, Any]]
    reward_range: list[float] | None
    collection_id: str | None
    user_id: str | None
    outcomes: list[Outcome] = Field(
        description="Everything reported, oldest first; of each metric the latest counts."
    )
    status: Literal["pending", "final", "corrected"]
    composite_reward: float | None = Field(
        description="Null while no outcome is known: censored, which is no failure."
    )
    evidence_revision: int = Field(
        description="The policy's version that its latest outcome made; 0 before any."
    )


# --- outcomes -------------------------------------------------------------------------------------


class Observation(Body):
    metric_key: MetricKey
    value: Annotated[float, Field(strict=True)] | StrictBool = Field(
        description="A number inside the reward range, or true and false for 1 and 0."
    )
    confidence: float | None = Field(
        default=None, strict=True, ge=0, le=1, description="How sure the source is."
    )
    source: ScopeName | None = Field(default=None, description="Who says so.")
    is_final: StrictBool = Field(
        default=True, description="Whether nothing more is expected of this metric."
    )
    corrects: str | None = Field(
        default=None,
        min_length=1,
        max_length=ID_CHARS_MAX,
        description="The observation it takes the place of.",
    )
    idempotency_key: BodyKey | None = None

    @field_validator("value")
    @classmethod
    def _is_finite(cls, value: float) -> float:
        if not math.isfinite(value):
            raise PydanticCustomError("finite_number", "must be a finite number")
        return float(value)


class NewOutcome(Body):
    observations: list[Observation] | None = Field(
        default=None, max_length=limits.OBSERVATIONS_PER_CALL_MAX, description="Metric by metric."
    )
    reward: float | None = Field(
        default=None,
        strict=True,
        ge=-REWARD_MAX,
        le=REWARD_MAX,
        description="One number, −1 to 1, or inside the decision's `reward_range`.",
    )
    success: StrictBool | None = Field(default=None, description="Whether it went well.")
    idempotency_key: BodyKey | None = None

    @model_validator(mode="after")
    def _said_one_way(self) -> NewOutcome:
        given = [
            name
            for name in ("observations", "reward", "success")
            if getattr(self, name) not in (None, [])
        ]
        if len(given) != 1:
            message = (
                "is required, or reward, or success"
                if not given
                else f"must be the only way of telling the outcome, not beside {given[0]}"
            )
            raise ValidationFailed.at(
                ("body", given[-1] if given else "observations"),
                message,
                "missing" if not given else "value_error",
            )
        return self


class OutcomeRecorded(View):
    decision_id: str
    observation_ids: list[str] = Field(description="Of this report, in order.")
    status: Literal["pending", "final", "corrected"]
    composite_reward: float | None
    outcome_count: int = Field(description="Observations of the decision so far.")
    evidence_revision: int = Field(description="The policy's version after this report.")
    replayed: bool


# --- evidence -------------------------------------------------------------------------------------


class Policy(View):
    policy_key: str = Field(description="Which policy.")
    policy_version: int = Field(description="How often its evidence has changed.")
    decisions: int = Field(description="Decisions made under it.")
    outcomes: int = Field(description="Of these, how many have an outcome.")
    created_at: str = Field(description="When its first decision was made (ISO 8601).")
    last_decision_at: str | None = Field(
        description="When its latest was; null when all were deleted with their collections."
    )


class InsightsQuery(Query):
    action_key: list[ActionKey] | None = Field(
        default=None,
        max_length=limits.ACTIONS_ASKED_MAX,
        description="Only these actions; repeatable.",
    )
    context: str | None = Field(
        default=None,
        max_length=limits.QUERY_STRING_CHARS_MAX,
        description="JSON: only decisions with these items.",
    )
    collection_id: CollectionId | None = Field(
        default=None, description="Only decisions of this collection."
    )
    user_id: ScopeName | None = Field(default=None, description="Only decisions of this end user.")


class BetaParameters(View):
    family: Literal["beta"]
    a: float = Field(description="1 + the sum of the rewards.")
    b: float = Field(description="1 + what they lack to 1 each.")


class StudentParameters(View):
    family: Literal["student_t"]
    location: float
    scale: float
    degrees_of_freedom: float
    low: float = Field(description="Least reward there can be, where it is cut.")
    high: float = Field(description="Greatest.")


class Posterior(View):
    mean: float
    credible_interval_90: list[float] = Field(
        description="5 % and 95 % quantiles of the action's mean reward."
    )
    distribution: BetaParameters | StudentParameters = Field(
        description="beta for rewards between 0 and 1; else Student's t, cut to the reward range."
    )


class Estimators(View):
    ips: float | None
    clipped_ips: float | None
    snips: float | None
    dr: float | None = Field(description="Doubly robust, cross-fitted.")


class ActionInsight(View):
    action_key: str
    count: int = Field(description="Decisions that took it.")
    outcomes: int = Field(description="Of these, how many have an outcome.")
    censored: int = Field(description="And how many have none yet.")
    posterior: Posterior
    probability_best: float = Field(
        description="Of being the best of the actions shown, by the posteriors."
    )
    effective_sample_size: float = Field(description="(Σw)² / Σw².")
    estimators: Estimators = Field(
        description="What always taking it would bring: points, without guarantee."
    )


class WorstCase(View):
    lower: float
    upper: float


class Insights(View):
    policy_key: str
    policy_version: int
    action_count: int = Field(description="Actions known; those taken most often are shown.")
    actions: list[ActionInsight]
    overlap: float = Field(
        description=(
            "Least effective sample size of an action shown, as a share of the decisions that "
            "could take it."
        )
    )
    max_weight: float = Field(description="Largest 1 / propensity seen.")
    missingness: float = Field(description="Share of the decisions without outcome.")
    worst_case_bounds: WorstCase = Field(
        description="Mean reward if all missing outcomes were the worst, or the best."
    )


class TargetAction(Body):
    action_key: ActionKey


class Guardrail(Body):
    metric_key: MetricKey
    margin: float = Field(
        default=0.0, strict=True, ge=0, le=1e12, description="How much worse it may get."
    )
    direction: Literal["higher_is_better", "lower_is_better"] = Field(
        default="higher_is_better", description="Which way is better."
    )


class Evaluate(Body):
    target: Literal["recommended"] | TargetAction = Field(
        default="recommended",
        description="Always this action; or what the evidence before each decision recommended "
        "for it.",
    )
    baseline: TargetAction | ActionKey | None = Field(
        default=None, description="Always this action; the policy as logged when absent."
    )
    margin: float = Field(
        default=0.0,
        strict=True,
        ge=-1e12,
        le=1e12,
        description="By how much the target must be better.",
    )
    alpha: float = Field(
        default=0.05,
        strict=True,
        ge=0.0001,
        le=0.5,
        description="Chance of a false `sufficient`, however often it is asked.",
    )
    guardrails: list[Guardrail] = Field(
        default_factory=list,
        max_length=limits.GUARDRAILS_MAX,
        description="What must not get worse.",
    )
    user_id: ScopeName | None = Field(default=None, description="Only decisions of this end user.")
    collection_id: CollectionId | None = Field(
        default=None, description="Only decisions of this collection."
    )
    limit: int = Field(
        default=limits.DECISIONS_EVALUATED_DEFAULT,
        strict=True,
        ge=1,
        le=limits.DECISIONS_EVALUATED_MAX,
        description="Newest decisions looked at.",
    )


class GuardrailVerdict(View):
    metric_key: str
    passed: bool = Field(description="Shown not to be worse than the margin allows.")
    lower_bound: float
    upper_bound: float
    estimate: float | None
    n: int


class Evaluation(View):
    verdict: Literal["sufficient", "insufficient", "harmful", "invalid"]
    lower_bound: float = Field(
        description="Of the target's mean reward minus the baseline's, valid however often it is "
        "asked."
    )
    upper_bound: float
    estimate: float | None
    n: int = Field(description="Decisions with an outcome that were looked at.")
    effective_sample_size: float
    guardrails: list[GuardrailVerdict]
    reasons: list[str] = Field(description="What stands behind the verdict, in sentences.")
    authorizes_action: Literal[False] = Field(
        description="Always false: evidence informs an action, it does not permit one."
    )
