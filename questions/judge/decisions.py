"""The recorded decisions that cost the most waiting."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostlyDecision:
    """A stretch of recorded decisions that cost waiting.

    Attributes
    ----------
    at_s, until_s
        Its first second, and that of the next decision.
    cost_s
        Weighted seconds of waiting that a replay spares if it decides from its start on and not
        only after it.
    text
        One or two sentences on what should have been done, and why.
    """

    at_s: float
    until_s: float
    cost_s: float
    text: str
