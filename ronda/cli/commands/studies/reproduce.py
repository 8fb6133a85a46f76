"""``ronda reproduce``: published figures of other systems next to ours."""

from pathlib import Path

import click
import msgspec

from ronda.bench.reproduction.claims import LONG_MIN, Claim, Figure, chosen, claims, recorded
from ronda.bench.reproduction.evidence import carry_out, figure_of
from ronda.bench.reproduction.tables import listed as a_line_each
from ronda.bench.reproduction.tables import tables_of
from ronda.bench.runs.folder import claim as hold
from ronda.bench.suites.suite import PACKAGED
from ronda.bench.tables import fill_file
from ronda.cli.command import taught
from ronda.cli.options import into_option, jobs_option, json_option, out_option
from ronda.cli.output import note, show
from ronda.instances.files.storage import label, read_bytes, write_bytes
from ronda.instances.tables.table import Report

LAST = PACKAGED.parent / "reproduced.json"
"""The packaged figures of each claim's last run."""

PART = "reproduction"
"""The name of the marks that enclose the tables in a page."""


@taught(
    "reproduce",
    "ronda reproduce --list                     a line a claim with its last figure; runs nothing",
    "ronda reproduce --list helios              all that is to be said of them",
    "ronda reproduce helios                     a minute",
    "ronda reproduce ones hermes --out results  some ten minutes on two cores",
    "ronda reproduce powerflow-best             one claim, however long it takes",
    "ronda reproduce --into docs/reproduction.md --record bench/data/reproduced.json",
)
@click.argument("names", metavar="[SYSTEM]...", nargs=-1)
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="Run nothing: show the last figures, a line a claim; of SYSTEMs all of it.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the last figures of all claims to FILE, with version and date.",
)
@into_option(PART)
@out_option("reproduce-out")
@jobs_option()
@json_option
def command(
    names: tuple[str, ...],
    listed: bool,
    record: Path | None,
    into: tuple[Path, ...],
    out: Path,
    jobs: int,
    as_json: bool,
) -> None:
    """Measure what was published about other systems, and say which claims are met.

    SYSTEM is powerflow, ones, hfta, helios, hermes, pollux, sia, gavel, shockwave, or the name of
    one claim; without any, all claims are measured. Claims that take longer than ten minutes run
    only if they are named; otherwise their last figure is shown, with version and date. The whole
    takes some 25 minutes on two cores. After a stop or a kill, the same command resumes.
    """
    known = claims()
    wanted = chosen(known, names)
    for page in into:
        fill_file(page, PART)  # refuses a page without the marks before any work
    figures = recorded(read_bytes(LAST), label(LAST)) if LAST.exists() else {}
    if not listed:
        asked = [c for c in wanted if c.words and (c.minutes <= LONG_MIN or c.name in names)]
        found: dict[str, Figure] = {}
        with hold(out, "reproduction"):
            commands = dict.fromkeys(claim.words for claim in asked)
            for k, words in enumerate(commands):
                own = [claim for claim in asked if claim.words == words]
                left = sum(
                    {c.words: c.minutes for c in asked if c.words in [*commands][k:]}.values()
                )
                note(
                    f"{k + 1}/{len(commands)} ronda {words} (at most {max(left, 0.1):.1f} min left)"
                )
                folder = carry_out(own[0], out, jobs)
                found |= {claim.name: figure_of(claim, folder) for claim in own}
        figures |= found
    if record is not None:
        write_bytes(record, msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
    for page in into:
        fill_file(page, PART, "\n".join(t.markdown() for t in tables_of(known, figures)))
    fields = {"out": str(out), "claims": [_fields(c, figures.get(c.name)) for c in wanted]}
    short = listed and not names
    tables = [a_line_each(wanted, figures)] if short else [*tables_of(wanted, figures)]
    show(Report(fields, tables), as_json=as_json)


def _fields(claim: Claim, figure: Figure | None) -> dict[str, object]:
    """Return a claim as fields for programs, with its figure and the verdict."""
    about = {name: getattr(claim, name) for name in ("name", "system", "what", "published", "sure")}
    told = {} if figure is None else msgspec.to_builtins(figure)
    return about | {"command": claim.words, "verdict": str(claim.verdict(figure))} | told
