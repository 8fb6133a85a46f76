"""Every policy on the probes: instances small enough for their best schedule to be known on paper.

How far a policy's mean JCT lies above that of the best schedule, in per cent, on each packaged
probe (``ronda instances show probe-window`` derives one), and where it got with other energy.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd

from ronda.bench.runs.knowledge import knowledge
from ronda.bench.study.harness import Folder, markdown, policies, study
from ronda.instances.check.answer import check
from ronda.instances.errors import RondaError
from ronda.instances.files import catalogue
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import summarise
from ronda.solvers.horizon.driver import run
from ronda.solvers.registry import parse

POLICIES = (
    "fifo,sjf,srtf(teardown_s=0),tiresias,race-to-idle,optimus,elasticflow-like,pollux-like,"
    "pollux-like+zeus,powerflow,powerflow-prices,prices,milp,milp-energy,genetic,evolve,ones"
)

CLOSE = 5e-4
"""Distances below this share are written as 0: seconds are rounded in the sums."""


def probes() -> tuple[str, ...]:
    """Return the names of the packaged probes."""
    return tuple(e.name for e in catalogue.entries() if e.name.startswith("probe-"))


def measure(probe: str, policy: str) -> dict[str, Any]:
    """Drive one policy over one probe; a run that cannot end has no distance."""
    instance = catalogue.load(probe)
    assert isinstance(instance, Instance)
    best = instance.reference["optimum"]
    found: dict[str, Any] = {"knowledge": knowledge(instance, parse(policy)[0])}
    try:
        schedule = run(instance, policy)
    except RondaError as error:
        return found | {"distance": None, "energy": None, "broken": 0, "message": str(error)}
    figures: dict[str, Any] = dict(summarise(instance, schedule))
    energy_j = best.get("energy_j")
    return found | {
        "distance": figures["mean_jct_s"] / best["mean_jct_s"] - 1.0,
        "energy": None if energy_j is None else figures["energy_j"] / energy_j - 1.0,
        "broken": len(check(instance, schedule)),
        "message": "",
    }


def table(runs: pd.DataFrame) -> str:
    """Return the distances by policy (rows) and probe (columns), in Markdown."""
    rows = []
    for policy, own in runs.groupby("policy", sort=False):
        by_probe: dict[Any, Any] = own.set_index("probe").to_dict("index")
        cells = [_words(by_probe[probe]) for probe in runs.probe.unique()]
        rows.append([str(policy), str(own.knowledge.iloc[0]), *cells])
    header = ["policy", "sizes", *(str(probe) for probe in runs.probe.unique())]
    return markdown(header, rows, words=2)


def _words(found: dict[str, Any]) -> str:
    """Return a distance in per cent, with that of the energy where it differs."""
    if found["distance"] is None or pd.isna(found["distance"]):
        return "never ends"
    text = f"{100.0 * found['distance']:.1f} %" if abs(found["distance"]) > CLOSE else "0"
    energy = found["energy"]
    if energy is not None and not pd.isna(energy) and abs(energy) > CLOSE:
        text += f", {100.0 * energy:+.1f} % energy"
    return text + (f", {found['broken']} rules broken" if found["broken"] else "")


def compare(folder: Folder, policies: Sequence[str]) -> None:
    """Run every policy on every probe."""
    cases = [{"probe": probe, "policy": policy} for policy, probe in product(policies, probes())]
    folder.write(table(folder.measure(cases, measure)))


command = study("probes", __doc__, compare, [policies(POLICIES)])
