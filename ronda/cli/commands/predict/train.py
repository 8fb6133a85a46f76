"""``ronda predict train``: a predictor of sizes from the jobs of an instance."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.load import instance as load_instance
from ronda.cli.options import FIGURE, instance_argument, seed_option, write_options
from ronda.cli.output import show
from ronda.cli.progress import waiting
from ronda.instances.tables.table import Report, Table

MEANINGS = {
    "jobs": "jobs that judge",
    "correlation": "rank correlation of sizes",
    "service_correlation": "rank correlation of GPUs times size",
    "error": "mean |log(believed / true)|",
    "coverage": "share within 10-90 % as believed",
}
"""The figures of a calibration in the table, with their labels."""


@taught(
    "train",
    "ronda predict train venus-vcvgl --out sizes.json.zst",
    "ronda predict train april-may.json.zst --out sizes.json.zst --figure sizes.png",
)
@instance_argument
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1),
    default=0.1,
    help="Weight of the rolling estimate against the trees.",
)
@seed_option
@click.option("--figure", type=FIGURE, metavar="PNG", help="Draw the calibration; CSV next to it.")
@write_options
def command(
    source: str,
    alpha: float,
    seed: int,
    out: Path,
    figure: Path | None,
    as_json: bool,
) -> int:
    """Train a predictor of sizes on the rigid jobs of INSTANCE, as Helios' QSSF service does.

    The predictor mixes trees (LightGBM) on user, virtual cluster, name, GPUs, time and earlier jobs
    with a rolling estimate. It fits the first 80 % of the jobs, learns errors from the others, and
    is judged on the last 10 %. `ronda instances convert` turns traces into instances. Training on
    venus-vcvgl takes a few seconds.
    """
    from ronda.instances.files import fits as predictors
    from ronda.solvers.fitting.size_predictor import train

    with waiting(f"training on {source}"):
        predictor = train(load_instance(source), alpha=alpha, seed=seed)
    predictors.write_predictor(predictor, out)
    if figure is not None:
        from ronda.bench.figures.beliefs import calibration_of
        from ronda.bench.figures.draw import save_chart

        save_chart(calibration_of(predictor), figure.with_suffix(""))
    judged = {name: getattr(predictor.calibration, name) for name in MEANINGS}
    told = {MEANINGS[name]: f"{value:,.3g}" for name, value in judged.items()}
    fields = {"out": str(out), "checksum": predictor.checksum, **judged}
    table = Table.facts(told, numbers=True)
    return show(Report(fields, [table, f"{out}: a predictor of sizes"]), as_json=as_json)
