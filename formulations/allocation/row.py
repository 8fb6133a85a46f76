"""A constraint of a round, however it is read."""

from dataclasses import dataclass, field

from ronda.instances.arrays import Floats

PowerAt = tuple[str, str]
"""Names of a pool and of a rack."""


@dataclass(frozen=True, slots=True)
class Row:
    """Σ_k use_k x_k + Σ_c nodes_c a_c + Σ_pr racks_pr y_pr ≤ capacity, named ``family[index]``.

    ``use`` is (n,) of the options, ``nodes`` (C,) of the nodes awake, or ().
    """

    name: str
    use: Floats
    capacity: float
    nodes: tuple[float, ...] = ()
    racks: dict[PowerAt, float] = field(default_factory=dict)
