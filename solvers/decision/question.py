"""What is asked about a round: which options its jobs have, and what each is worth."""

from collections.abc import Mapping

import msgspec

from ronda.formulations.objectives.forms import minds_power, values
from ronda.formulations.options.build import build
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline


class Question(msgspec.Struct, frozen=True, eq=False):
    """A round with its options and their values: the same for policies, models and explanations."""

    round: Round
    objective: str
    table: OptionTable
    values: Floats  # (K,) what the options are worth
    policy: str = ""  # it, `packages` and `seed` go into the plan's record
    packages: tuple[str, ...] = ()
    seed: int = 0
    options_s: float = 0.0  # seconds since entry when the options and values were there

    @classmethod
    def of(
        cls,
        round: Round,
        objective: str,
        *,
        elastic: bool = True,
        parameters: Mapping[str, float] | None = None,
        policy: str = "",
        packages: tuple[str, ...] = (),
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> "Question":
        """Build the options of a round and what they are worth, by the objective's parameters.

        Watts matter among options if the objective minds them or the round limits them.
        """
        table = build(round, elastic=elastic, mind_power=minds_power(objective) or None)
        worth = values(round, table, objective, **(parameters or {}))
        options_s = deadline.elapsed() if deadline else 0.0
        return cls(round, objective, table, worth, policy, ("ronda", *packages), seed, options_s)
