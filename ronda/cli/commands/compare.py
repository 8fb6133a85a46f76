"""``ronda compare``: a comparison of several policies on several instances, with seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ronda.bench.figures.overview import overview, ranks
from ronda.bench.runs.results import Result
from ronda.bench.runs.specs import MAX_SEEDS, BoundEffort, RunCase, split_policies
from ronda.bench.suites.calibration import (
    distance_table,
    replayed,
    starts_off_s,
)
from ronda.bench.suites.cells import expand
from ronda.bench.suites.suite import Suite, locate, read
from ronda.bench.suites.summary import Summary, comparison_report
from ronda.bench.suites.tables import arrange, points
from ronda.bench.tables import fill_file, keep_tables, write_tables
from ronda.cli.command import taught
from ronda.cli.commands.studies.report import PACKAGES, written
from ronda.cli.options import bound_option, into_option, predictor_option, was_given
from ronda.cli.output import can_draw, note
from ronda.cli.progress import Bars
from ronda.cli.runs import How, horizon_options
from ronda.instances.errors import InputError, need
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance, Knowledge
from ronda.instances.schedule import RECORDED

SUITE = ".toml"

NAMES = {
    "policies": "policies",
    "levels": "knowledge",
    "seeds": "seeds",
    "time_limit": "time_limit_s",
    "predictor": "predictor",
    "bound": "bound",
    "timeout": "timeout_s",
    "memory": "memory_mib",
}
"""The options that set fields of a suite, and these fields."""


@taught(
    "compare",
    "ronda compare venus-vcvly --policies fifo,sjf,srtf",
    "ronda compare pollux-1 pollux-2 --policies 'srtf,milp(gap=1e-3),genetic' --seeds 0-4",
    "ronda compare pollux-1 --policies fifo,srtf,prices --resample 20",
    "ronda compare pollux-1 --policies pollux-like,prices --knowledge oracle,history",
    "ronda compare pollux-1 --policies genetic --seeds 0-9 --dask tcp://127.0.0.1:8786",
    "ronda compare headline.toml --into README.md   a packaged suite: 20 minutes on two cores",
    "ronda compare lab/suites/faults.toml --seeds 1-3 --report",
)
@horizon_options("compare-out")
@predictor_option
@click.option(
    "--resample",
    type=click.IntRange(2, MAX_SEEDS),
    metavar="N",
    help="N workloads like that of each instance, drawn from it in blocks of submissions, for "
    "seeds 0 to N-1 (docs/statistics.md).",
)
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Show what a log tells of as a row and a chart of its own: the --schedule of ronda "
    "instances convert, of one of the INSTANCEs; again for more.",
)
@bound_option
@into_option("NAME (of the suite)")
@click.option("--report", is_flag=True, help="Write report.html, too: see ronda report.")
def command(
    sources: tuple[str, ...],
    policies: str,
    levels: tuple[Knowledge, ...],
    predictor: Path | None,
    resample: int | None,
    recorded: tuple[Path, ...],
    bound: BoundEffort,
    seeds: str,
    time_limit: float,
    timeout: float,
    memory: float,
    out: Path,
    figures: bool,
    as_json: bool,
    into: tuple[Path, ...],
    report: bool,
    **how: Any,
) -> int:
    """Compare policies on INSTANCEs by solution quality and by solve time.

    Every run has its own process and adds one line to results.jsonl. After a stop or a kill, the
    same command resumes. The table is printed and written to table.md and table.csv. The command
    takes as long as its runs, with --jobs of them in parallel; progress goes to stderr, in a log
    once a minute.

    Instead of INSTANCEs, a suite (a .toml file or a packaged name) can state all this and changes
    to the instances. Options on the command line override the suite. A suite takes from seconds to
    half an hour.
    """
    if report:
        need("--report", *PACKAGES)
    chosen = split_policies(policies), levels, seeds, time_limit, str(predictor or ""), bound
    given = dict(zip(NAMES.values(), (*chosen, timeout, memory), strict=True))
    suite, place = Suite(instances=tuple(dict.fromkeys(sources))), ""
    if any(source.endswith(SUITE) for source in sources):
        if len(sources) > 1:
            raise InputError(sources[0], f"{len(sources)} arguments", "one suite, or instances")
        path = locate(sources[0])
        suite, place = read(path), str(path)
        given = {field: given[field] for option, field in NAMES.items() if was_given(option)}
        out = out if was_given("out") else Path(f"{Path(place).stem}-out")
    if recorded:
        given["recorded"] = tuple(map(str, recorded))
    if resample is not None:
        if was_given("seeds"):
            raise InputError("--resample", "--seeds as well", "one: N workloads are seeds 0 to N-1")
        given["seeds"] = f"0-{resample - 1}"
        suite = replace(suite, change=suite.change | {"resample": {}})
    suite = suite.asked(**given)
    part = Path(place).stem or "comparison"
    for page in into:
        fill_file(page, part)  # refuses a page without the marks before any work
    runs = How(out, timeout=suite.timeout_s or timeout, memory=suite.memory_mib or memory, **how)
    expanded = expand(suite, out, place, Path(place).parent)
    table, axes = arrange(suite, expanded, place)
    with runs.ready("comparison") as run:
        expanded.keep()
        with Bars() as bars:
            expanded.tighten(lambda name, share: bars.update(f"bound of {name}", share))
        results = {result.key: result for result in run(expanded.cases)}
        told, together = comparison_report(table if suite.table else None, expanded, results)
        records = [*replayed(expanded.cases, results, runs.layout)]
        told = told._replace(parts=[*told.parts, *map(distance_table, records)])
        write_tables(told.tables, out)
        keep_tables(told.tables, out)
        versions = dict.fromkeys(each.versions.get("ronda", "?") for each in results.values())
        made_by = f"{len(results)} runs of ronda {', '.join(versions)}.\n"
        text = "\n".join([*(each.markdown() for each in told.tables), made_by])
        for page in into:
            fill_file(page, part, text)
        figures = figures and can_draw()
        if figures and axes:
            from ronda.bench.figures.draw import save_chart

            save_chart(points(table, axes, results), out / "figures" / "points")
        elif figures and not suite.table:
            _draw(expanded.cases, [*results.values()], runs, together)
        if figures and records:
            from ronda.bench.figures.calibration import calibration
            from ronda.bench.figures.draw import save_chart

            found = [
                (name, own, {k: starts_off_s(own[RECORDED], other) for k, other in own.items()})
                for name, own, _ in records
            ]
            save_chart(calibration(found), out / "figures" / "calibration")
        if report:
            note(f"report: {written(out)}")
    return runs.tell([*results.values()], told, as_json=as_json)


def _draw(
    todo: Sequence[RunCase], results: Sequence[Result], runs: How, together: Summary | None
) -> None:
    """Draw the figures of each instance (if resampled, of its first draw), and of all together."""
    from ronda.bench.figures.draw import save_chart
    from ronda.bench.figures.run import draw_comparison

    cases = dict[str, RunCase]()
    for case in todo:
        cases.setdefault(" ".join(filter(None, (case.instance, case.variant.title))), case)
    with Bars() as bars:
        for index, (name, case) in enumerate(cases.items()):
            bars.update("figures", index / len(cases), name)
            own = [r for r in results if r.fingerprint == case.fingerprint and r.ok]
            plain = load(case.source)
            assert isinstance(plain, Instance)
            folder = runs.layout.figures(name)
            draw_comparison(case.variant.apply(plain), own, runs.layout, folder)
    save_chart(overview(results), runs.out / "figures" / "overview")
    if together is not None and together.tested and together.ranks is not None:
        count = len(together.mean_jct_s)
        chart = ranks(together.labels, together.ranks, count)
        save_chart(chart, runs.out / "figures" / "ranks")
