"""A report of a supply curve of flexible power: a table, fields and notes."""

from collections.abc import Sequence
from math import inf

from msgspec.structs import asdict

from ronda.formulations.watts import TOLERANCE
from ronda.instances.tables.table import Report, Table
from ronda.questions.curtail.curve import Curtailment
from ronda.questions.curtail.driven import Driven

NAMES = 3
"""Number of those who bear a reduction that a row names."""

FIELDS = (
    *("for_s", "within_s", "drawn_w", "floor_w", "worth", "slack", "gpus", "borne_by"),
    *("pass_s", "solve_s"),
)
"""The fields of a curve that programs read as they are."""


def curtail_report(
    source: str, found: Curtailment, price: float | None = None, runs: Sequence[Driven] = ()
) -> Report:
    """Return a report of a curve, with runs of the horizon; `price` is that of a GPU-hour."""
    fields = {
        "round": found.round.name,
        "now_s": found.round.now_s,
        **{field: getattr(found, field) for field in FIELDS},
        "sheds": [
            {k: v for k, v in asdict(shed).items() if k != "plan"}
            | {"gpu_s": shed.gpu_s, "delay_s": shed.delay_s}
            | {"last_kwh": found.last_kwh(shed), "each_kwh": found.each_kwh(shed)}
            for shed in found.sheds
        ],
        "runs": runs,
    }
    tables = [_curve(source, found, price)] if found.sheds else []
    if any(shed.solved is not None for shed in found.sheds):
        tables.append(_solved(found))
    tables += [_run(found, each) for each in runs]
    within = f" within {found.within_s:g} s" if found.within_s is not None else ""
    drawn = f"{found.floor_w:,.0f} W are drawn by what may not be stopped"
    notes = [] if found.sheds else [f"no watt can be shed{within}: {drawn}"]
    return Report(fields, tables, notes, int(not found.sheds))


def _curve(source: str, found: Curtailment, price: float | None) -> Table:
    each = 1.0 if price is None else price
    unit = "GPU-h" if price is None else "money"
    rows = []
    for shed in found.sheds:
        least = max(0.0, found.worth - shed.most_worth) / found.worth if found.worth else 0.0
        lost = max(0.0, found.worth - shed.worth) / found.worth if found.worth else 0.0
        bear = [each for each in shed.bearers if each.jobs]
        told = [f"{b.name} {b.gpu_s / 3600:.1f} ({b.delay_s / 3600:.1f})" for b in bear[:NAMES]]
        more = f", … ({len(bear) - NAMES} more)" if len(bear) > NAMES else ""
        rows.append(
            {
                "kW less": f"{shed.less_w / 1e3:.4g}",
                "%": f"{100 * shed.less_w / found.drawn_w:.1f}",
                "lost, at least %": f"{100 * least:.2f}",
                "by plan %": f"{100 * lost:.2f}",
                "GPU-h behind": f"{shed.gpu_s / 3600:.1f}",
                "later, job-h": f"{shed.delay_s / 3600:.1f}",
                f"last kWh costs ({unit})": f"{each * found.last_kwh(shed):.3g}",
                "on average": f"{each * found.each_kwh(shed):.3g}",
                f"borne by {found.borne_by}: GPU-h (job-h)": ", ".join(told) + more,
            }
        )
    within = "" if found.within_s is None else f", reached within {found.within_s:g} s"
    title = (
        f"{source} at {found.round.now_s:,.0f} s: {found.drawn_w / 1e3:,.4g} kW for "
        f"{len(found.plan.allocations)} jobs on {found.gpus:g} GPUs; "
        f"less for {found.for_s / 3600:.3g} h{within}"
    )
    return Table.of(title, rows, _notes(found, price))


def _notes(found: Curtailment, price: float | None) -> list[str]:
    gap = max(
        (s.most_worth - s.worth) / found.worth if found.worth > 0 else 0.0 for s in found.sheds
    )
    notes = [
        f"one pass of {found.pass_s:.2f} s; its plans are within {100 * gap:.2g} % of the worth as "
        "it is of the bound that its prices give on all plans",
        f"at least {found.floor_w / 1e3:,.4g} kW are drawn when all is stopped that may be; a "
        "GPU-hour counts as what the plan as it is is worth by GPU-hour",
    ]
    if found.sheds[-1].cap_w > found.floor_w * (1 + TOLERANCE):
        notes.append(f"no plan was found for more than {found.sheds[-1].less_w / 1e3:.4g} kW less")
    now = found.round.energy_price_per_j
    if price is not None and now is not None:
        notes.append(
            f"at {now * 3.6e6:.4g} a kWh, {found.pays(now * 3.6e6 / price) / 1e3:.4g} kW less pay"
        )
    return notes


def _solved(found: Curtailment) -> Table:
    rows = [
        {
            "kW less": f"{shed.less_w / 1e3:.4g}",
            "pass": f"{shed.worth:.5g}",
            "solved anew": f"{shed.solved:.5g}",
            "bound": f"{shed.most_worth:.5g}",
        }
        for shed in found.sheds
        if shed.solved is not None
    ]
    over = found.outside()
    ratio = found.solve_s / found.pass_s if found.pass_s else inf
    verdict = f"one is {over:.2%} above" if over > 1e-9 else "none is above"
    note = f"of {len(rows)} solved anew in {found.solve_s:.2f} s ({ratio:.1f} times the pass), "
    return Table.of("worth, checked by solving anew", rows, (f"{note}{verdict} the bound",))


def _run(found: Curtailment, run: Driven) -> Table:
    rows = [
        {
            found.borne_by: late.name,
            "jobs later": f"{late.jobs}",
            "later on average, s": f"{late.mean_s:,.0f}",
            "longest, s": f"{late.longest_s:,.0f}",
        }
        for late in run.late
    ]
    title = (
        f"whole run under {run.cap_w / 1e3:,.4g} kW in the window: at most "
        f"{run.peak_w / 1e3:,.4g} kW drawn, {run.peak_before_w / 1e3:,.4g} kW without the cap"
    )
    note = (
        f"{run.less_j / 3.6e6:,.4g} kWh less in the window, "
        f"{run.more_after_j / 3.6e6:,.4g} kWh more outside it"
    )
    return Table.of(title, rows, (note,))
