"""``ronda anytime``: plan quality against time for several policies on the same rounds."""

from typing import Any

import click

from ronda.bench.anytime.table import as_table, lines, times
from ronda.bench.anytime.traces import cases, references, traces_of
from ronda.bench.runs.folder import keep
from ronda.bench.runs.specs import parse_seeds, split_policies
from ronda.bench.tables import keep_tables, write_tables
from ronda.cli.command import taught
from ronda.cli.load import round_ as load_round
from ronda.cli.options import (
    Source,
    jobs_option,
    json_option,
    memory_option,
    out_option,
    parquet_option,
    policies_option,
    seeds_option,
    time_limit_option,
)
from ronda.cli.output import can_draw
from ronda.cli.runs import How
from ronda.formulations.objectives.by_name import minds_power
from ronda.instances.tables.table import Report


@taught(
    "anytime",
    "ronda anytime round.json --policies evolve,milp,prices",
    "ronda anytime *.json --policies 'evolve(population=32),prices' --seeds 0-9 --out curves",
)
@click.argument("sources", metavar="ROUND...", type=Source(), nargs=-1, required=True)
@policies_option("ones,evolve,milp,prices")
@click.option(
    "--objective",
    default="rank",
    help="What all plans are valued by, and what policies that can choose aim at.",
)
@seeds_option
@time_limit_option(10.0, "For each decision; the primal integral goes up to it.")
@out_option("anytime-out")
@jobs_option(1, True, "Runs side by side: more than one disturb each other's times.")
@memory_option
@parquet_option
@json_option
def command(
    sources: tuple[str, ...],
    policies: str,
    objective: str,
    seeds: str,
    time_limit: float,
    as_json: bool,
    **how: Any,
) -> int:
    """Draw solution quality against time and against evaluations on ROUNDs.

    Every run has its own process and adds one line to results.jsonl. One objective values all
    plans, relative to the best bound that any policy proves. The table is printed and written to
    table.md and table.csv; the folder also has figures with their numbers.

    The command takes up to --time-limit for each round, policy and seed; progress goes to stderr.
    """
    minds_power(objective)  # refuses an unknown objective
    wanted, numbers = split_policies(policies), parse_seeds(seeds)
    runs = How(**how, timeout=60.0 + 3 * time_limit, answer="plan")
    rounds = {source: load_round(source) for source in dict.fromkeys(sources)}
    todo = cases(rounds, wanted, numbers, objective=objective, time_limit_s=time_limit)
    named = {each.name: each for each in rounds.values()}
    with runs.ready("anytime", {"objective": objective}) as run:
        for source, each in rounds.items():
            keep(runs.out, source, each)
        results = run(todo)
        found = traces_of(results, named, runs.layout, objective)
        made = lines(found, results, time_limit)
        table = as_table(made, time_limit)
        write_tables([table], runs.out)
        keep_tables([table], runs.out)
        if references(found) and can_draw():
            from ronda.bench.anytime.figure import quality_over_time
            from ronda.bench.figures.draw import save_chart

            reference = references(found)
            for name in reference:
                own = [trace for trace in found if trace.round == name]
                save_chart(quality_over_time(own, reference, time_limit), runs.layout.figures(name))
            if len(reference) > 1:
                known = [trace for trace in found if trace.round in reference]
                whole = quality_over_time(known, reference, time_limit)
                save_chart(whole, runs.layout.folder / "figures" / "all rounds")
    fields = {"references": references(found), "times_s": times(time_limit), "policies": made}
    return runs.tell(results, Report(fields, [table]), as_json=as_json)
