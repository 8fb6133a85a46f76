"""The allocation model of a round, as the exact policy casts it."""

from typing import Any

from ronda.instances.errors import InputError
from ronda.instances.round import Round


def allocation_model(round: Round, spec: str) -> Any:
    """Return the Pyomo model that ``--policy milp(...)`` stands for.

    Parameters
    ----------
    round
        The round.
    spec
        The policy with its parameters.

    Raises
    ------
    InputError
        If the policy is one without a model.
    """
    from ronda.formulations.allocation import pyomo_model as allocation
    from ronda.formulations.objectives.forms import values
    from ronda.formulations.options import table as options
    from ronda.instances.rules.validate import validate
    from ronda.solvers.policies.optimising.milp import Milp
    from ronda.solvers.registry import policy

    made = policy(spec)
    if not isinstance(made, Milp):
        raise InputError("--policy", f"{made.name!r}, which has no model", "milp(...)")
    validate(round)
    table = options.build(round, elastic=made.elastic)
    return allocation.build(round, table, values(round, table, made.objective))
