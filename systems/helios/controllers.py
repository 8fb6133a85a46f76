"""Controllers that let nodes sleep on a demand series, and the form of their decisions."""

from dataclasses import dataclass
from typing import Literal, Protocol

from ronda.instances.base import Ints
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import one_of
from ronda.solvers import own
from ronda.solvers.plugins import Plugin
from ronda.solvers.registry import converted, parse, refuse_unknown
from ronda.systems.helios.forecasts import DemandForecast


@dataclass(frozen=True, slots=True)
class Control:
    """The decisions of a controller on a series.

    Attributes
    ----------
    active
        Number of nodes awake, shape (T,).
    knowledge
        ``oracle`` knows the future, ``leaking`` has a forecast that has seen some of it,
        ``history`` knows past demand, and ``none`` knows only the current demand.
    forecast
        The forecast used, if it has quantiles.
    """

    active: Ints
    knowledge: Literal["oracle", "leaking", "history", "none"]
    forecast: DemandForecast | None = None


class Controller(Protocol):
    """The interface of an object that decides how many nodes are awake."""

    def control(self, series: Demand) -> Control:
        """Decide how many nodes are awake in each step of a series."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanilla:
    """A controller that lets each node sleep as soon as it is not needed."""

    def control(self, series: Demand) -> Control:
        """Keep exactly the needed nodes awake."""
        return Control(series.needed_nodes.copy(), "none")


CONTROLLERS = {
    "ces": "ronda.systems.helios.ces:Ces",
    "vanilla": "ronda.systems.helios.controllers:Vanilla",
    "lot-sizing": "ronda.systems.helios.lot_sizing:LotSizing",
    "oracle": "ronda.systems.helios.lot_sizing:Oracle",
}
"""The module and class of each controller, keyed by name; no policy has such a name."""


def controller(spec: str) -> Controller:
    """Make a controller from its name and parameters, such as ``"ces(cluster=earth)"``.

    Raises
    ------
    InputError
        If the controller or a parameter is unknown, or a value is invalid.
    """
    name, given = parse(spec)
    if name not in CONTROLLERS:
        renamed = "lot-sizing (milp is a policy of rounds)" if name == "milp" else ""
        raise InputError("--policy", repr(name), renamed or one_of(CONTROLLERS, name))
    cls = Plugin(CONTROLLERS[name]).load(f"--policy {name}")
    known = own.parameters(cls)
    refuse_unknown(name, given, known)
    made: Controller = converted(spec, cls, given, name, known)
    return made
