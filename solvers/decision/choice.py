"""What a round's plan is made from besides the choice."""

from collections.abc import Mapping

import msgspec

from ronda.formulations.objectives.forms import minds_power, values
from ronda.formulations.options.table import OptionTable, build
from ronda.instances.arrays import Floats
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline


class Setting(msgspec.Struct, frozen=True, eq=False):
    """What a plan is made from besides the choice.

    Attributes
    ----------
    policy, objective, seed
        Who decides, and what options are worth.
    round, table, values
        The round, its options, and (K,) what they are worth.
    options_s
        Seconds since entry when these were there.
    packages
        Whose versions the record names.
    """

    policy: str
    objective: str
    seed: int
    round: Round
    table: OptionTable
    values: Floats
    options_s: float
    packages: tuple[str, ...]

    @classmethod
    def of(
        cls,
        policy: str,
        objective: str,
        packages: tuple[str, ...],
        *,
        round: Round,
        seed: int,
        deadline: Deadline,
        elastic: bool = True,
        mind_power: bool = False,
        parameters: Mapping[str, float] | None = None,
    ) -> "Setting":
        """Build the options of a round and what they are worth, by the objective's parameters.

        Watts matter among options if the objective or the caller (`mind_power`) minds them, or the
        round limits them.
        """
        minds = mind_power or minds_power(objective) or None
        table = build(round, elastic=elastic, mind_power=minds)
        worth = values(round, table, objective, **(parameters or {}))
        elapsed = deadline.elapsed()
        return cls(policy, objective, seed, round, table, worth, elapsed, ("ronda", *packages))
