"""The measurement of a claim: run its command in a kept folder, and read our figure from it."""

import shlex
import subprocess
import sys
from datetime import date
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

import ronda
from ronda.bench.figures.columns import METRICS
from ronda.bench.reproduction.claims import Claim, Figure
from ronda.bench.runs.provenance import commit
from ronda.bench.runs.results import RESULTS, results_of
from ronda.bench.statistics import Interval
from ronda.bench.suites.cells import expand
from ronda.bench.suites.rows import TableColumn
from ronda.bench.suites.suite import PACKAGED, Ratio, read
from ronda.bench.suites.tables import Arranged
from ronda.instances.errors import RondaError
from ronda.instances.files.storage import file_name, write_bytes

ANSWER = "answer.json"
"""The file with the output of a command that is no suite, and ronda's version."""


def carry_out(claim: Claim, out: Path, jobs: int) -> Path:
    """Run the rest of a claim's command, and return the command's folder.

    Progress goes to stderr. Raise RondaError if the command fails, but not for a suite's failed
    runs.
    """
    words, folder = shlex.split(claim.words), out / file_name(claim.words)
    if claim.suite:
        words[1] = str(_suite(claim))
    if (folder / ANSWER).exists():
        return folder
    if words[0] in {"compare", "frontier"}:
        words += ["--no-figures", "--jobs", str(jobs), "--out", str(folder)]
    command = [sys.executable, "-m", "ronda", *words, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RondaError(f"{claim.name}: ronda {claim.words} ended with {done.returncode}")
    if not claim.suite:
        folder.mkdir(parents=True, exist_ok=True)
        answer = msgspec.json.decode(done.stdout.splitlines()[-1])
        made = {"answer": answer, "version": ronda.__version__, "commit": commit()}
        write_bytes(folder / ANSWER, msgspec.json.encode(made))
    return folder


def _suite(claim: Claim) -> Path:
    """Return the packaged file of a claim's suite, if there is one, or else the file it names."""
    packaged = PACKAGED / claim.suite
    return packaged if packaged.exists() else Path(claim.suite)


def figure_of(claim: Claim, folder: Path) -> Figure:
    """Return ronda's figure from the files that a claim's command left in its folder."""
    if claim.suite:
        return _of_suite(claim, folder)
    path = folder / ANSWER
    made = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    value, sizes = _told(claim, made["answer"])
    day = date.fromtimestamp(path.stat().st_mtime).isoformat()
    return Figure(
        value=value, sizes=sizes, version=made["version"], commit=made["commit"], date=day
    )


def _of_suite(claim: Claim, folder: Path) -> Figure:
    """Return the figure of a suite: the greatest among the rows at the claim's axes."""
    path = _suite(claim)
    suite = read(path)
    if claim.seeds:
        suite = suite.asked(seeds=claim.seeds)
    expanded = expand(suite, folder, str(path), path.parent)
    results = {result.key: result for result in results_of(folder).all()}
    sides = (claim.ours, claim.ours | claim.against)
    cells = [c for c in expanded.cells if any(side.items() <= c.at.items() for side in sides)]
    mean = suite.ratio.mean if suite.ratio else "geometric"
    ratio = Ratio(to=dict(claim.against), mean=mean) if claim.against else None
    rows = (*claim.each, *(claim.ours.keys() | claim.against.keys()))
    lines = Arranged(cells, (), rows, ratio=ratio).lines(results)
    ours = [
        line
        for line in lines
        if claim.ours.items() <= dict(zip(rows, line.at, strict=True)).items()
    ]
    column = TableColumn(METRICS[claim.metric], "interval" if claim.against else "")
    shown = [(_shown(claim, line.value(column)), line) for line in ours]
    found, line = max(shown, key=lambda each: -1.0 if isnan(each[0].value) else each[0].value)
    value, low, high = (None if isnan(end) else end for end in found)
    run = line.runs[-1]
    # The sources of sizes of ronda's policy and of the comparator, or one if they agree.
    both = ([pair.run for pair in line.pairs], [pair.base for pair in line.pairs])
    firsts = filter(None, (next(filter(None, runs), None) for runs in both))
    return Figure(
        value=value,
        low=low,
        high=high,
        sizes=" / ".join(dict.fromkeys(str(x.metrics.get("knowledge", "–")) for x in firsts)),
        note=line.note,
        version=run.versions.get("ronda", ""),
        commit=run.commit,
        date=date.fromtimestamp((folder / RESULTS).stat().st_mtime).isoformat(),
    )


def _shown(claim: Claim, ratio: Interval) -> Interval:
    """Return the figure that a claim shows, from the interval of a ratio or of a mean."""
    value, low, high = ratio
    match claim.shows:
        case "times":
            return Interval(1 / value, 1 / high, 1 / low)
        case "cut":
            return Interval(1 - value, 1 - high, 1 - low)
        case _:
            return ratio


def _told(claim: Claim, answer: dict[str, Any]) -> tuple[float | None, str]:
    """Return the figure from a command that prints JSON, and its source of sizes.

    For a frontier, this is the greatest ratio at equal energy; ``best`` is the best of ronda's own.
    """
    if "instances" not in answer:
        return float(answer[claim.metric]), str(answer.get("knowledge", ""))
    (about,) = answer["instances"]
    own, base = claim.ours["policy"], claim.against["policy"]
    ratios: list[tuple[float, str]] = []
    for level in about["equal_energy"]:
        jct_s = {each["policy"]: each["mean_jct_s"] for each in level["policies"]}
        name = level["best"] if own == "best" else own
        if jct_s.get(name) and jct_s.get(base):
            ratios.append((jct_s[base] / jct_s[name], name))
    if not ratios:
        return None, ""
    most, name = max(ratios)
    known = {curve["policy"]: curve["knowledge"] for curve in about["curves"]}
    return most, " / ".join(dict.fromkeys(known[each] for each in (name, base)))
