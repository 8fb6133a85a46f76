"""Explanations in words of why a job got its option."""

from collections.abc import Callable, Sequence

from ronda.instances.errors import InputError
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.site import GPUS
from ronda.instances.tables.table import Report, Table
from ronda.questions.explain import Explanation, Weighed, explain_jobs, refuse_unknown
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.registry import POLICIES, policy_class
from ronda.solvers.rules import rules_of


def unit_of_worth(objective: str) -> str:
    """Return the objective with its unit in words, if a few can name it."""
    unit = ", seconds of all jobs' completion times saved per second"
    return f"objective {objective}" + unit * (objective == "rank")


REASONS = {
    "must_run": "It may not be stopped or changed, so it keeps what it has.",
    "young": "It has not run for its minimum run time yet, so it keeps what it has.",
    "best": "Nothing else gives it more at these prices.",
    "tie": "At these prices something else would be just as good for it; others' needs decided.",
    "second_best": "Its favourite would give it more at these prices, but not all jobs' "
    "favourites fit together: the plan is worth more as a whole this way.",
    "no_option": "No pool that it may use can run it within the limits of its racks.",
    "worthless": "No way to run it is worth more than not to run: a restart would cost more "
    "progress than it gains.",
    "too_dear": "Its best option costs more than it is worth: others make more of these GPUs.",
    "crowded_out": "Its best option is worth its price, but not everything that is fits "
    "together: it lost less by waiting than others would.",
    "no_room": "It was chosen, but no nodes had room for it.",
    "not_yet": "It may not start now.",
}


def explanation_told(
    round: Round, made: Policy, jobs: Sequence[str]
) -> Callable[[Report, Plan], Report]:
    """Return a function that adds to a plan's report why some jobs got their options.

    InputError is raised before any work if the policy cannot explain or the round lacks a job.
    """
    if Capability.PRICES not in made.capabilities:
        kinds = {name: policy_class(name) for name in POLICIES}
        can = {n: getattr(kind, "capabilities", Capability.NONE) for n, kind in kinds.items()}
        able = [name for name in POLICIES if Capability.PRICES in can[name]]
        expected = f"a policy with prices: {', '.join(able)}"
        raise InputError("--explain", f"--policy {made.name}, which has no prices", expected)
    refuse_unknown(jobs, round)
    how = {name: getattr(made, name) for name in ("elastic", "parameters") if hasattr(made, name)}

    def told(report: Report, plan: Plan) -> Report:
        if plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
            return report
        why = explain_jobs(round, plan, jobs, **how, extra=rules_of(made))
        for found in why:
            ruled = any(option.rule_cost for option in found.options)
            rows = [_row(option, ruled=ruled) for option in found.options]
            report = report.added(*sentences(found), Table.of("", rows, left=(0, 1)))
        return report.added(explanation=why)

    return told


def sentences(found: Explanation) -> list[str]:
    """Return sentences that say why a job got its option."""
    lines = [
        f"{found.job}: {_lot(found)} ({unit_of_worth(found.objective)})",
        f"  {_prices(found)}",
    ]
    if found.options:
        lines.append(f"  {_comparison(found)}")
    lines.append(f"  {REASONS[found.reason]}")
    if found.hindrance:
        about = "Why not" if found.reason == "not_yet" else "On nodes"
        lines.append(f"  {about}: {found.hindrance}.")
    if found.moved:
        lines.append("  To make room for others it keeps its option but moves to other nodes.")
    if found.regret is not None and found.reason != "tie":  # a tie has none, up to rounding
        said = f"Anything else would be at least {found.regret:.4g} worse for it (its regret)."
        if found.regret < 0:
            said = f"It gave up {-found.regret:.4g} for the others (regret {found.regret:.4g})."
        lines.append(f"  {said}")
    return lines


def _lot(found: Explanation) -> str:
    got = found.chosen
    if not found.runs or got is None:
        return "runs" if found.runs else "waits"
    how = "goes on with" if got.current else "gets"
    return f"{how} {shape(got)}"


def shape(option: Weighed) -> str:
    """Return an option in words, such as ``8 GPUs of default/A100 at 80 % clock, batch 256``."""
    if not option.gpus:
        return "not to run"
    many = "GPU" if option.gpus == 1 else "GPUs"
    return (
        f"{option.gpus} {many} of {option.pool} at {100 * option.clock:.3g} % clock, "
        f"batch {option.batch:g}" + (" (after waking)" if option.late else "")
    )


def _prices(found: Explanation) -> str:
    free = []
    parts = []
    for price in found.prices:
        what = unit_of(price.name)
        cost = price.each if price.kilowatt is None else price.kilowatt
        if cost > 0:
            parts.append(f"{what} costs {cost:.4g}")
        else:
            free.append(what)
    if free:
        parts.append(f"{' and '.join(free)} cost{'s' if len(free) == 1 else ''} nothing")
    said = "; ".join(parts) or "nothing that it could use is scarce"
    return said[0].upper() + said[1:] + "."


def unit_of(row: str) -> str:
    """Return in words the unit of a row that has a price; for power and energy, a kilowatt."""
    family, _, rest = row.partition("[")
    inside = rest.rstrip("]")
    until_s = f"{float(inside):.4g}" if family == "energy_by" else ""
    first, _, last = inside.rpartition(",")
    one = "a GPU" if last == GPUS else f"a unit of {last}"
    return {
        "gpus": f"a GPU of {inside}",
        "limit": f"{one} under the limit of {first}",
        "borrow": f"{one} that {first} may borrow",
        "tree": f"{one} of all that is guaranteed in {first}",
        "lent": f"{one} that {first} keeps at home",
        "firm": f"{one} for jobs of {first} that may not be stopped",
        "owed": f"{one} that is owed to {first}",
        "fair": f"{one} of the fair share of {first}",
        "jobs": f"a job more of {inside}",
        "run": f"a GPU-second until the time limits of jobs of {first}",
        "ready_gpus": "one that is awake already, besides,",
        "whole_nodes": f"a whole node of {inside.partition(',')[0]}",
        "buddy": f"a free block of {last} GPUs of {first}",
        "stopped": f"a GPU that stops, moves or restarts{f' in {inside}' * bool(inside)}",
        "stopped_jobs": f"a job that stops, moves or restarts{f' in {inside}' * bool(inside)}",
        "class": f"a unit of worth of class {inside}",
        "host": f"a unit of {last} on hosts of {first}",
        "host_nodes": "the {1} of a whole host of {0}".format(*f"{inside},".split(",", 2)),
        "licence": f"a licence {inside}",
        "slices": f"room in a rack for a slice of {last} nodes of {first}",
        "slice_nodes": f"a node for slices of {last} or more nodes of {first}",
        "named_nodes": f"a GPU of nodes that jobs name in {first}",
        "power_cap": "a kilowatt under the power cap",
        "energy_window": "a kilowatt throughout the energy window",
        "energy_by": f"a kilowatt for the next {until_s} s",
        "rack_share": f"a kilowatt in the racks of {inside}",
        "array": f"one more task of job array {inside}",
        "staying": f"a GPU of {first} that stays beyond {last} s",
    }.get(family, f"a unit of {row}")


def _comparison(found: Explanation) -> str:
    got = found.chosen
    rest = [o for o in found.options if o is not got and o.gpus]
    ways = [got] if got is not None and got.gpus else []
    ways += rest[:1]
    ways += [o for o in rest if all(o.gpus != way.gpus for way in ways)][:1]
    ways += [o for o in found.options if not o.gpus]
    said = "; ".join(_balance(o) for o in ways)
    return said[0].upper() + said[1:] + "."


def _balance(option: Weighed) -> str:
    if not option.gpus:
        return "not to run: 0"
    side = "more" if option.surplus >= 0 else "less"
    return f"{shape(option)} is worth {abs(option.surplus):.4g} {side} than it costs"


def _row(option: Weighed, *, ruled: bool) -> dict[str, str]:
    words = (("chosen", option.chosen), ("now", option.current), ("after waking", option.late))
    runs = bool(option.gpus)
    costs = {"GPUs cost": option.gpu_cost, "power": option.power_cost}
    costs |= {"rules": option.rule_cost} if ruled else {}
    return {
        "": " ".join(word for word, on in words if on),
        "pool": option.pool if runs else "not to run",
        "GPUs": f"{option.gpus}" if runs else "",
        "clock": f"{option.clock:.3g}" if runs else "",
        "batch": f"{option.batch:g}" if runs else "",
        "worth": f"{option.worth:z.4g}",
        **{name: f"{cost:z.4g}" if runs else "" for name, cost in costs.items()},
        "surplus": f"{option.surplus:z.4g}",
    }
