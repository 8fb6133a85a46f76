"""The report of a sweep in words and tables: for the terminal, Markdown and programs."""

from dataclasses import asdict
from typing import Any

from ronda.bench.frontier.curves import (
    FASTER,
    NUMBERS,
    THRIFTIER,
    FrontierPoint,
    FrontierVerdict,
    Level,
    spans,
)
from ronda.bench.frontier.report import Frontier
from ronda.bench.frontier.shadow import SHADOWS
from ronda.instances.tables.numbers import seconds
from ronda.instances.tables.table import Best, Report, Table

_NONE = "–"


def frontier_report(made: Frontier) -> Report:
    """Return a frontier as a report without empty tables."""
    fields = {
        "instance": made.instance.name,
        "full_w": made.full_w,
        "curves": [
            {
                "policy": curve.label,
                "own": curve.own,
                "knowledge": curve.knowledge,
                "points": [_numbers(point) for point in curve.points],
                "failures": curve.failures,
            }
            for curve in made.curves
        ],
        "bound": [{"energy_j": energy, "mean_jct_s": jct} for energy, jct in made.bound],
        "equal_energy": [
            {"energy_j": each.energy_j, "best": each.best, "policies": _reached(each)}
            for each in made.levels
        ],
        "strongest": {
            "equal_energy": [asdict(duel) for duel in made.equal_energy],
            "equal_jct": [asdict(duel) for duel in made.equal_jct],
        },
        "targets": [asdict(verdict) | {"unit": "J"} for verdict in made.verdicts],
        "shadow_prices": made.shadows,
        "rankings": [asdict(ranking) for ranking in made.rankings],
        "failures": made.failures,
    }
    tables = (_points(made), _levels(made), _duels(made), _shadow(made), _rankings(made))
    return Report(fields, [table for table in tables if table.rows])


def _points(made: Frontier) -> Table:
    unit_j, points = made.unit_j, [(curve, p) for curve in made.curves for p in curve.points]
    rows = []
    for curve, p in points:
        used, jct = f"{p.energy_j / unit_j:.4g}", seconds(p.mean_jct_s)
        used += f" ± {p.energy_half_j / unit_j:.2g}" if p.energy_half_j else ""
        jct += f" ± {seconds(p.mean_jct_half_s)}" if len(p.runs) > 1 else ""
        bound_s = p.bound_mean_jct_s
        rows.append(
            {
                "policy": curve.label,
                "sizes": curve.knowledge,
                "budget ×": f"{p.factor:g}",
                "kW": f"{p.sustained_w / 1e3:.4g}",
                f"used ({made.unit})": used,
                "mean JCT (s)": jct,
                "above bound": f"{p.mean_jct_s / bound_s - 1:z.1%}" if bound_s else _NONE,
            }
        )
    own = made.instance.budget.energy is not None
    what = "its own energy budget" if own else "the draw with all GPUs busy at full clock"
    notes = [
        f"{curve.label} uses more energy at ×{', ×'.join(f'{f:g}' for f in curve.rises)} than "
        "at the next larger budget"
        for curve in made.curves
        if curve.rises
    ]
    if any(len(p.runs) > 1 for _, p in points):
        notes.insert(0, "±: half of the 95 % confidence interval of the mean over seeds")
    return Table.of(
        f"{made.instance.name}: by energy budget; ×1 is {made.full_w / 1e3:.4g} kW, {what}",
        rows,
        notes,
        (
            {"policy": curve.label, "sizes": curve.knowledge} | _numbers(p) | {"seeds": len(p.runs)}
            for curve, p in points
        ),
    )


def _numbers(point: FrontierPoint) -> dict[str, Any]:
    found = {name: getattr(point, name) for name in (*NUMBERS, "bound_mean_jct_s")}
    return found | {"seeds": [run.seed for run in point.runs]}


def _levels(made: Frontier) -> Table:
    unit_j, unit = made.unit_j, made.unit
    rows = []
    for curve in made.curves:
        cells = []
        for each in made.levels:
            jct_s, ratio = each.jct_s[curve.label], each.ratio(curve.label)
            text = _NONE if jct_s is None else seconds(jct_s)
            if ratio is not None:
                best = each.best == curve.label
                text = Best(f"{text} best") if best else f"{text} ({ratio:.2f}×)"
            cells.append(text)
        rows.append((curve.label, *cells))
    missing = f"{_NONE}: no run of the policy used so little; between points JCT is interpolated"
    against = "in brackets: times the JCT of ronda's best policy there"
    if not any(each.best for each in made.levels):
        against = "none of ronda's own policies has a point: no ratios"
    return Table(
        f"{made.instance.name}: mean JCT (s) at equal energy",
        ("policy", *(f"{each.energy_j / unit_j:.4g} {unit}" for each in made.levels)),
        tuple(rows),
        (missing, against, *(verdict_words(v, unit_j, unit) for v in made.verdicts)),
        tuple({"energy_j": each.energy_j, **row} for each in made.levels for row in _reached(each)),
    )


def _reached(at: Level) -> list[dict[str, Any]]:
    return [
        {"policy": label, "mean_jct_s": jct_s, "ratio": at.ratio(label)}
        for label, jct_s in at.jct_s.items()
    ]


def _duels(made: Frontier) -> Table:
    if not any(curve.own for curve in made.curves):
        return Table("", (), ())
    unit_j, unit = made.unit_j, made.unit
    rows, records = [], []
    for what, duels in (("energy_j", made.equal_energy), ("mean_jct_s", made.equal_jct)):
        for start, end, worst in spans(duels):
            if what == "energy_j":
                where = f"{start / unit_j:.4g} to {end / unit_j:.4g} {unit}"
                gain = f"{worst.gain:.2f}× faster"
            else:
                where = f"mean JCT {seconds(start)} to {seconds(end)} s"
                gain = f"{worst.gain:.0%} less energy"
            rows.append(
                {
                    "at equal": where,
                    "ronda's best": worst.own or _NONE,
                    "strongest comparator": worst.rival,
                    "at the worst place": _NONE if worst.own is None else gain,
                }
            )
            records.append({"at_equal": what, "from": start, "to": end} | asdict(worst))
    title = f"{made.instance.name}: the best of ronda's own against the strongest comparator"
    return Table.of(title, rows, [duel_words(made)] if rows else (), records)


def duel_words(made: Frontier) -> str:
    """Say where ronda's policies lead the strongest comparator by most, and where they lag."""
    unit_j, unit = made.unit_j, made.unit
    faster = max(made.equal_energy, key=lambda duel: duel.gain)
    less = max(made.equal_jct, key=lambda duel: duel.gain)
    met = faster.gain >= FASTER or less.gain >= THRIFTIER
    words = (
        f"target {FASTER}× or {THRIFTIER:.0%} somewhere: {'met' if met else 'NOT met'}: "
        f"{faster.gain:.2f}× faster with {faster.at / unit_j:.4g} {unit}, "
        f"{less.gain:.0%} less energy for {seconds(less.at)} s"
    )
    behind = [f"{d.at / unit_j:.4g} {unit}" for d in made.equal_energy if d.gain < 1.0]
    behind += [f"{seconds(d.at)} s" for d in made.equal_jct if d.gain < 0.0]
    return words + (f"; WORSE at {', '.join(behind)}" if behind else "; worse nowhere")


def verdict_words(verdict: FrontierVerdict, unit_j: float, unit: str) -> str:
    """Say whether ronda's policies meet the target against a comparator, and where they do not."""
    ratios = [ratio for _, ratio in (*verdict.met, *verdict.missed)]
    head = f"target {verdict.target}× against {verdict.label}"
    if not ratios:
        return f"{head}: no energy at which both have a point"
    words = f"{head}: {min(ratios):.2f}× to {max(ratios):.2f}×, "
    words += f"met at {len(verdict.met)} of {len(ratios)} energies"
    if verdict.missed:
        where = (f"{energy / unit_j:.4g} {unit} ({r:.2f}×)" for energy, r in verdict.missed)
        words += f"; NOT met at {', '.join(where)}"
    if verdict.unreachable:
        where = (f"{energy / unit_j:.4g}" for energy in verdict.unreachable)
        words += f"; {verdict.label} has no run with as little as {', '.join(where)} {unit}"
    return words


def _shadow(made: Frontier) -> Table:
    rows = (
        {"policy": row["label"], "budget ×": f"{row['factor']:g}"}
        | {n: _NONE if row[k] is None else f"{row[k]:,.4g}" for k, n in SHADOWS.items()}
        for row in made.shadows
    )
    notes = (
        "measured: between this budget and the next; a GPU: with --vary nodes=1",
        "prices: the model's opinion, from the rounds' prices; see docs/frontier.md",
    )
    title = f"{made.instance.name}: seconds of mean JCT that one more is worth"
    return Table.of(title, rows, notes, made.shadows)


def _rankings(made: Frontier) -> Table:
    rows, varied = [], [ranking for ranking in made.rankings if ranking.change]
    width = max((len(ranking.order) for ranking in made.rankings), default=0)
    for ranking in made.rankings:
        places = [f"{label} ({seconds(jct)})" for label, jct in ranking.order]
        places += [_NONE] * (width - len(places))
        swaps = ", ".join(f"{first} before {second}" for first, second in ranking.swapped)
        rows.append(
            {"instance": f"{ranking.change or 'as it is'}, budget ×{ranking.factor:g}"}
            | {f"{k}": text for k, text in enumerate(places, start=1)}
            | {"changed": swaps or _NONE}
        )
    same = sum(not ranking.swapped for ranking in varied)
    return Table.of(
        f"{made.instance.name}: ranking by mean JCT (s) with other power figures, equal budgets",
        rows,
        [f"the ranking is that of the instance as it is in {same} of {len(varied)} cases"],
        (
            {"change": r.change, "factor": r.factor, "place": k, "policy": p, "mean_jct_s": jct_s}
            for r in made.rankings
            for k, (p, jct_s) in enumerate(r.order, start=1)
        ),
    )
