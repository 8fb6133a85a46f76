"""The controllers: CES, sleep at once, rolling lot sizing on forecasts, and perfect foresight."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol

import msgspec
import numpy as np

from ronda.formulations.prediction.demand import DemandForecast, Target, last_value, seasonal
from ronda.formulations.sleeping.ces import RULES, Forecast, ces, published, vanilla
from ronda.formulations.sleeping.lot_sizing import least_cost
from ronda.formulations.sleeping.two_stage import costs, roll, wanted, weights, whole
from ronda.instances.arrays import Floats, Ints
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load_demand
from ronda.instances.rules.problem import one_of
from ronda.solvers import own
from ronda.solvers.registry import converted, parse, refuse_unknown

Price = Annotated[float, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Control:
    """What a controller does on a series.

    Attributes
    ----------
    active
        (T,) nodes awake.
    knowledge
        ``oracle`` knows the future, ``leaking`` has a forecast that has seen some of it,
        ``history`` knows what was needed until then, ``none`` what is needed now.
    forecast
        What it was decided by, if it has quantiles.
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
class Ces:
    """Helios's controller.

    Attributes
    ----------
    cluster
        Whose published parameters.
    forecast
        The series' own, which is not causal; LightGBM, causal or as leaking as the artifact's; by
        the time of day; or that all stays as it is.
    history
        A demand series that precedes, for ``boosted`` to learn from; a name or a file.
    """

    cluster: Literal["venus", "earth", "saturn", "uranus", "philly"] = "earth"
    forecast: Literal["published", "leaking", "boosted", "seasonal", "last"] = "published"
    history: str = ""

    def control(self, series: Demand) -> Control:
        """Decide by the two thresholds."""
        foretold, quantiles = self._forecast(series)
        active = ces(series.needed_nodes, series.total_nodes, foretold, RULES[self.cluster])
        leaks = self.forecast in ("published", "leaking")
        return Control(active, "leaking" if leaks else "history", quantiles)

    def _forecast(self, series: Demand) -> tuple[Forecast, DemandForecast | None]:
        if self.forecast == "published":
            if not series.forecast:
                found = f"no published forecast in {series.name}"
                raise InputError("--policy ces", found, "ces(forecast=boosted), or another one")
            return published(np.array(series.forecast)), None
        if self.forecast == "leaking":
            from ronda.formulations.prediction.boosted import leaking

            return published(leaking(series).astype(np.int64)), None
        made = _forecast(series, "level", self.forecast, self.history)
        steps = 2 * RULES[self.cluster].ahead
        return _medians(series.needed_nodes, made.quantile(0.5, steps)), made


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanilla:
    """Each node sleeps as soon as it is not needed."""

    def control(self, series: Demand) -> Control:
        """Keep awake what is needed."""
        return Control(vanilla(series.needed_nodes), "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Milp:
    """Two-stage lot sizing on quantile forecasts of the peak, solved again in every step.

    Attributes
    ----------
    price
        What a wake-up costs, in nodes awake for a step.
    hours
        How far ahead it plans.
    eps, lead
        Nothing is missing for `lead` steps with probability 1 - eps.
    keep
        Steps for which it must pay that a node sleeps before it does.
    forecast
        LightGBM, by the time of day, or that all stays as it is.
    history
        A demand series that precedes, for ``boosted`` to learn from; a name or a file.
    """

    price: Price = 50.0
    hours: Annotated[float, msgspec.Meta(gt=0, le=24)] = 18.0
    eps: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.2
    lead: Annotated[int, msgspec.Meta(ge=1)] = 6
    keep: Annotated[int, msgspec.Meta(ge=1)] = 9
    forecast: Literal["boosted", "seasonal", "last"] = "boosted"
    history: str = ""
    BUFFER: ClassVar[int] = 5
    """Nodes awake above the need while there is no forecast: that of CES."""

    def control(self, series: Demand) -> Control:
        """Solve every step exactly by dynamic programming."""
        made = _forecast(series, "peak", self.forecast, self.history)
        steps = max(1, round(self.hours * 3600 / series.step_s))
        cost = costs(whole(made.paths(steps)), weights(made.levels), self.price)
        floor = np.maximum(whole(made.quantile(1 - self.eps, self.lead)[:, -1]), 0)
        least = wanted(series.needed_nodes, cost, floor)
        active = roll(
            series.needed_nodes,
            series.total_nodes,
            least,
            made.first,
            keep=self.keep,
            buffer=self.BUFFER,
        )
        return Control(active, "history", made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """The bound of perfect foresight: it knows the future, so nobody can do it.

    Attributes
    ----------
    price
        What a wake-up costs, in nodes awake for a step.
    lead
        Steps before it is needed by which a node is awake.
    """

    price: Price = 150.0
    lead: Annotated[int, msgspec.Meta(ge=0)] = 0

    def control(self, series: Demand) -> Control:
        """Solve lot sizing over the whole series."""
        ahead = np.concatenate([series.needed_nodes, np.zeros(self.lead, dtype=np.int64)])
        least = np.lib.stride_tricks.sliding_window_view(ahead, self.lead + 1).max(axis=1)
        most = series.total_nodes
        return Control(least_cost(np.minimum(least, most), most, self.price), "oracle")


CONTROLLERS: dict[str, type[Controller]] = {
    "ces": Ces,
    "vanilla": Vanilla,
    "milp": Milp,
    "oracle": Oracle,
}
"""By name."""


def controller(spec: str) -> Controller:
    """Make a controller from its name and parameters, such as ``"ces(cluster=earth)"``.

    Raises
    ------
    InputError
        If the controller, a parameter or its value is not known or not possible.
    """
    name, given = parse(spec)
    if name not in CONTROLLERS:
        raise InputError("--policy", repr(name), one_of(CONTROLLERS, name))
    known = own.parameters(CONTROLLERS[name])
    refuse_unknown(name, given, known)
    made: Controller = converted(spec, CONTROLLERS[name], given, name, known)
    return made


def _forecast(series: Demand, target: Target, name: str, history: str) -> DemandForecast:
    """Return a causal forecast by its name."""
    if name != "boosted":
        if history:
            expected = "forecast=boosted, which learns from one"
            raise InputError("--policy", f"history={history} with forecast={name}", expected)
        return {"seasonal": seasonal, "last": last_value}[name](series, target)
    from ronda.formulations.prediction.boosted import boosted

    past = load_demand(history) if history else None
    if past is not None and past.step_s != series.step_s:
        expected = f"steps of {series.step_s:g} s, as {series.name} has"
        raise InputError(f"history={history}", f"steps of {past.step_s:g} s", expected)
    return boosted(series, target, history=past)


def _medians(needed: Ints, rise: Floats) -> Forecast:
    """Return a forecast that knows what is needed now, and the median of what comes."""

    def of(t: int, steps: int) -> Floats:
        return np.asarray(needed[t] + np.concatenate([[0.0], np.floor(rise[t, : steps - 1])]))

    return of
