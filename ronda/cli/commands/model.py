"""The allocation model of a round, as the exact policy casts it."""

from typing import Any

from ronda.instances.errors import InputError
from ronda.instances.round import Round


def allocation_model(round: Round, spec: str) -> Any:
    """Return the Pyomo model that ``--policy milp(...)`` stands for."""
    from ronda.formulations.allocation.pyomo_model import build
    from ronda.instances.rules.validate import validate
    from ronda.solvers.decision.question import Question
    from ronda.solvers.policies.optimising.milp import Milp
    from ronda.solvers.registry import policy

    made = policy(spec)
    if not isinstance(made, Milp):
        raise InputError("--policy", f"{made.name!r}, which has no model", "milp(...)")
    validate(round)
    question = Question.of(round, made.objective, elastic=made.elastic, parameters=made.parameters)
    return build(round, question.table, question.values)
