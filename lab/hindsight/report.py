"""How good a schedule hindsight finds, and how much of the gap to a bound is left.

Each instance is run by policies of the headline suite, which know nothing of the future. The best
run that can be steered is then changed at random, trial after trial: jobs weigh more or less from
some moment on, get no more than so many GPUs, or another policy takes over. A trial that ends with
a lower mean JCT, and in whose schedule the independent checker finds nothing, is the next to be
changed. So a schedule in hindsight is one that can be carried out, by somebody who knows it.

Of the gap between the best policy and the quick bound, the table says how much is known to be

    loose        the tight bound is above the quick one by so much
    reachable    the schedule in hindsight is better than the policy by so much
    undecided    what is left between the schedule in hindsight and the tight bound

An instance without trials in the folder has its bounds only. Everything is kept: a later call makes
further trials, and a call with --minutes 0 only writes the table again.
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pandas as pd
from msgspec.structs import replace

from lab.harness import Folder, markdown, option, study
from lab.hindsight.search import Line, exact, search
from lab.hindsight.steering import Run
from ronda.bench.runs.results import SealedLines
from ronda.bench.tables import fill_file
from ronda.cli.progress import Bars
from ronda.formulations.bounds.certificate import check_bound, packaged_bound
from ronda.formulations.bounds.clairvoyant import bounds
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.files.json import read, write
from ronda.instances.files.packaged import entries, load
from ronda.instances.files.storage import label
from ronda.instances.instance import DECLARED, Instance
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.schedule import Schedule
from ronda.instances.tables.numbers import percent

SECTION = "hindsight"
"""The section of a page that the table is written into."""


def trials_of(folder: Folder) -> SealedLines[Line]:
    """Return the trials in the folder."""
    path = folder.path / "trials.jsonl"
    return SealedLines(path, "a trial", lambda n: (n["instance"], n["seed"], n["trial"]))


def best_s(folder: Folder, instance: Instance) -> float:
    """Return the mean JCT in seconds of the schedule that is kept; infinite if there is none."""
    path = folder.path / f"{instance.name}.json.zst"
    if not path.exists():
        return math.inf
    schedule = read(path)
    wrong = check(instance, schedule) if isinstance(schedule, Schedule) else ["no schedule"]
    if not isinstance(schedule, Schedule) or wrong:
        raise InputError(label(path), str(wrong[0]), "a schedule without violations")
    return float(job_figures(schedule).jct_s.mean())


def look(folder: Folder, instance: Instance, seed: int, trials: int, minutes: float) -> None:
    """Make an instance's trials for some minutes; keep the best schedule of all searches."""
    least_s, began = best_s(folder, instance), time.monotonic()

    def keep(run: Run) -> None:
        if run.mean_jct_s < least_s:
            slim = replace(run.schedule, rounds=())
            write(slim, folder.path / f"{instance.name}.json.zst")

    with Bars() as bars:
        for line in search(instance, trials_of(folder), seed, trials, keep):
            spent = (time.monotonic() - began) / (60.0 * minutes)
            bars.update(instance.name, min(1.0, spent), f"trial {line['trial']}")
            if spent >= 1.0:
                return


def bound(*, instance: str, kind: str) -> dict[str, Any]:
    """Return the quick bound on an instance's mean JCT, or the tight one, 0 if there is none.

    The tight one is that of the packaged certificate, or the optimum if it is known by hand.
    """
    given = _instance(instance)
    if kind == "tight":
        certificate = packaged_bound(given)
        proven_s = 0.0 if certificate is None else check_bound(given, certificate)
        proven_s = max(proven_s, given.reference.get("optimum", {}).get("mean_jct_s", 0.0))
        return {"mean_jct_s": proven_s, "known": proven_s > 0}
    unknown = replace(given, name="without-a-certificate")
    return {"mean_jct_s": bounds(unknown).mean_jct_s, "known": True}


def row_of(
    name: str, quick_s: float, tight_s: float, found_s: float, sizes: str, lines: Sequence[Line]
) -> list[str]:
    """Return an instance's row: bounds, and what trials found, with shares of the old gap."""
    row = [name, f"{quick_s:,.1f}", f"{tight_s:,.1f}"]
    begun = [line for line in lines if line["move"] == "start" and line["mean_jct_s"] is not None]
    told = [n for n in begun if n["knowledge"] == DECLARED and "horizon_s" not in n["policy"]]
    if not told or found_s == math.inf:
        return [*row, *["–"] * 7]
    online = min(told, key=lambda line: float(line["mean_jct_s"]))
    online_s = online["mean_jct_s"]
    found_s = min(found_s, online_s)  # a policy that is not steered may be the best
    gap_s = online_s - quick_s
    parts = (tight_s - quick_s, online_s - found_s, found_s - tight_s)
    return [
        *row,
        f"{online_s:,.1f} ({online['policy'].partition('(')[0]})",
        sizes,
        f"{found_s:,.1f} ({len(lines)})",
        percent(online_s / tight_s - 1.0),
        *(percent(part / gap_s, ".0f") if gap_s > 1e-6 * online_s else "–" for part in parts),
    ]


def table_of(folder: Folder, bounded: pd.DataFrame) -> str:
    """Return the table of all instances; Markdown."""
    header = ["instance", "quick bound (s)", "tight bound (s)", "best policy (s)"]
    header += ["sizes", "in hindsight (s, trials)", "policy over tight bound (%)"]
    header += ["gap loose (%)", "reachable (%)", "undecided (%)"]
    rows, lines = [], trials_of(folder).all()
    for name, own in bounded.groupby("instance", sort=False):
        given = _instance(str(name))
        sizes = "true" if exact(given) else "estimates"
        mine = [line for line in lines if line["instance"] == name]
        quick_s, tight_s = own.mean_jct_s.iloc[0], own.mean_jct_s.max()
        rows.append(row_of(str(name), quick_s, tight_s, best_s(folder, given), sizes, mine))
    return markdown(header, rows)


def _instance(name: str) -> Instance:
    found = load(name)
    if not isinstance(found, Instance):
        raise InputError(name, "a round", "an instance")
    return found


def experiment(
    folder: Folder,
    instances: tuple[str, ...],
    minutes: float,
    trials: int,
    seed: int,
    into: Path | None,
) -> None:
    """Search, bound, and write the table."""
    if into is not None:
        fill_file(into, SECTION)  # refuses a page without the marks before any work
    names = instances or tuple(e.name for e in entries() if e.kind == "instance")
    for name in names if minutes else ():
        look(folder, _instance(name), seed, trials, minutes)
    cases = [{"instance": name, "kind": kind} for name in names for kind in ("quick", "tight")]
    bounded = folder.measure(cases, bound, lambda line: bool(line.get("known")))
    table = table_of(folder, bounded)
    folder.write(table)
    if into is not None:
        fill_file(into, SECTION, table)


command = study(
    "hindsight",
    __doc__,
    experiment,
    [
        click.Argument(["instances"], nargs=-1),
        option("--minutes", type=click.FloatRange(0.0), default=5.0, help="For each instance."),
        option("--trials", type=click.IntRange(1), default=1000, help="At most, of each instance."),
        option("--seed", type=click.IntRange(0), default=0, help="Of what trials draw."),
        option("--into", type=click.Path(path_type=Path), help="A page with a section for it."),
    ],
)
