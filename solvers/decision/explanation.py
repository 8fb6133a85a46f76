"""What is said about what a job got: reasons, prices, and options with worth and cost."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a job got what it got."""

    MUST_RUN = "must_run"  # it may not be stopped or changed
    BEST = "best"  # nothing else gives it more at these prices
    TIE = "tie"  # something else would be just as good
    SECOND_BEST = "second_best"  # its favourite and those of the others do not fit together
    NO_OPTION = "no_option"  # there is no way to run it
    WORTHLESS = "worthless"  # no way to run it is worth anything
    TOO_DEAR = "too_dear"  # its best option costs more than it is worth
    CROWDED_OUT = "crowded_out"  # worth its price, but not everything that is fits together
    NO_ROOM = "no_room"  # chosen, but the nodes have no room for it


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a resource: ``name`` as in the plan, ``each`` for one unit of it.

    ``kilowatt`` is what a kilowatt costs for as long as the round's limit looks ahead; None for
    what is not power or energy.
    """

    name: str
    each: float
    kilowatt: float | None


@dataclass(frozen=True, slots=True)
class Weighed:
    """A way to run the job, or not to (0 GPUs): its worth, what it costs, and the difference."""

    pool: str
    gpus: int
    clock: float
    batch: float
    worth: float
    gpu_cost: float
    power_cost: float
    surplus: float
    chosen: bool
    current: bool
    late: bool  # nodes must wake first


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job got what it got.

    Attributes
    ----------
    job, objective
        Of which job, and what its options' worth means (`ronda.formulations.objectives.forms`).
    runs, reason
        Whether it runs, and why.
    moved
        Whether it keeps its option but had to change nodes.
    regret
        Surplus of what it got less that of its next best; None if it has no other choice.
    prices
        Of the resources that its options use.
    options
        The most interesting ones, best first; not to run is one of them unless it must run.
    """

    job: str
    objective: str
    runs: bool
    reason: Reason
    moved: bool
    regret: float | None
    prices: tuple[Price, ...]
    options: tuple[Weighed, ...]

    @property
    def chosen(self) -> Weighed | None:
        """What the job got."""
        return next((o for o in self.options if o.chosen), None)
