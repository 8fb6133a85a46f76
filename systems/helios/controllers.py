"""Controllers of sleep on a demand series, by name, and the form of their decisions."""

from dataclasses import dataclass
from typing import Literal, Protocol

from ronda.instances.arrays import Ints
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
        (T,) nodes awake.
    knowledge
        ``oracle`` knows the future, ``leaking`` has a forecast that has seen some of it,
        ``history`` knows the needs until then, ``none`` the need of now.
    forecast
        The forecast that was used, if it has quantiles.
    """

    active: Ints
    knowledge: Literal["oracle", "leaking", "history", "none"]
    forecast: DemandForecast | None = None


class Controller(Protocol):
    """Anything that decides how many nodes are awake."""

    def control(self, series: Demand) -> Control:
        """Decide every step of a series."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanilla:
    """Each node sleeps as soon as it is not needed."""

    def control(self, series: Demand) -> Control:
        """Keep awake what is needed."""
        return Control(series.needed_nodes.copy(), "none")


CONTROLLERS = {
    "ces": "ronda.systems.helios.ces:Ces",
    "vanilla": "ronda.systems.helios.controllers:Vanilla",
    "lot-sizing": "ronda.systems.helios.lot_sizing:LotSizing",
    "oracle": "ronda.systems.helios.lot_sizing:Oracle",
}
"""Where the class of each controller lives, by name; none of them is a policy's."""

RENAMED = {"milp": "lot-sizing (milp is a policy of rounds)"}
"""Former names, and what they are called now."""


def controller(spec: str) -> Controller:
    """Make a controller from its name and parameters, such as ``"ces(cluster=earth)"``.

    Raises
    ------
    InputError
        If the controller, a parameter or its value is not known or not possible.
    """
    name, given = parse(spec)
    if name not in CONTROLLERS:
        raise InputError("--policy", repr(name), RENAMED.get(name) or one_of(CONTROLLERS, name))
    cls = Plugin(CONTROLLERS[name]).load(f"--policy {name}")
    known = own.parameters(cls)
    refuse_unknown(name, given, known)
    made: Controller = converted(spec, cls, given, name, known)
    return made
