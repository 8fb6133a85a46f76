"""``ronda compare``: several policies on several instances, with seeds, side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ronda.bench.figures import write_tables
from ronda.bench.figures.comparison import Block, blocks
from ronda.bench.runs import Result, cases, parse_seeds, split_policies
from ronda.cli.command import taught
from ronda.cli.load import instance as load_instance
from ronda.cli.options import predictor_option
from ronda.cli.progress import Bars
from ronda.cli.runs import How, horizon_options
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import Instance, Knowledge


@taught(
    "compare",
    "ronda compare venus-vcvly --policies fifo,sjf,srtf",
    "ronda compare pollux-1 pollux-2 --policies 'srtf,milp(gap=1e-3),genetic' --seeds 0-4",
    "ronda compare pollux-1 --policies pollux-like,prices --knowledge oracle,history",
    "ronda compare pollux-1 --policies genetic --seeds 0-9 --dask tcp://127.0.0.1:8786",
)
@horizon_options("compare-out")
@predictor_option
def command(
    sources: tuple[str, ...],
    policies: str,
    levels: tuple[Knowledge, ...],
    predictor: Path | None,
    seeds: str,
    time_limit: float,
    figures: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """Compare policies on INSTANCEs by solution quality and by solve time.

    Every run has a process of its own and adds one line to results.jsonl. Stopped or killed, the
    same command goes on. The table is printed and written to table.md and table.csv.
    """
    wanted, numbers, runs = split_policies(policies), parse_seeds(seeds), How(**how)
    instances = {source: load_instance(source) for source in dict.fromkeys(sources)}
    loaded = {source: (found, fingerprint(found)) for source, found in instances.items()}
    todo = cases(
        loaded, wanted, numbers, time_limit_s=time_limit, levels=levels, predictor=predictor
    )
    with runs.ready("comparison") as run:
        results = run(todo)
        found = blocks(results)
        tables = [block.table() for block in found]
        write_tables(tables, runs.out)
        if figures:
            _draw({case.instance: instances[case.source] for case in todo}, results, runs)
    more = {"instances": [_fields(block) for block in found]}
    return runs.tell(results, tables, more, as_json=as_json)


def _draw(instances: Mapping[str, Instance], results: Sequence[Result], runs: How) -> None:
    from ronda.bench.figures.overview import overview
    from ronda.bench.figures.run import draw_comparison

    with Bars() as bars:
        for index, (name, instance) in enumerate(instances.items()):
            bars.update("figures", index / len(instances), name)
            own = [result for result in results if result.instance == name and result.ok]
            draw_comparison(instance, own, runs.layout, runs.layout.figures(name))
    overview(results, runs.out / "figures" / "overview")


def _fields(block: Block) -> dict[str, Any]:
    return {
        "instance": block.instance,
        "jobs": block.jobs,
        "bound_mean_jct_s": block.bound_mean_jct_s,
        "policies": [
            {"policy": row.label, "runs": len(row.runs), "note": row.note, **row.means}
            for row in block.rows
        ],
    }
