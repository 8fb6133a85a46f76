"""Philly's half day in a machine room in which things break.

No public trace has arrivals, scaling, power and faults together. How often jobs fail is Philly's;
all the rest is made, and faults of nodes are much more frequent than published ones, so that half a
day of eight nodes sees some.
"""

from dataclasses import replace
from pathlib import Path

from msgspec import structs

from ronda.instances.generate.faults import Breakage, broken
from ronda.instances.instance import Instance
from ronda.instances.recipes.energy import HALF_DAY, energy

BREAKAGE = Breakage(
    node_failures=0.5,
    repair_s=7200.0,
    drains=0.5,
    drain_s=7200.0,
    notice_s=3600.0,
    job_failures=0.41,
    retries=3,
    checkpoint_s=1800.0,
    stragglers=0.05,
    slow_s=3600.0,
    slowest=0.5,
    speed_error=0.1,
    power_error=0.05,
    silences=0.05,
    silence_s=1800.0,
    report_s=60.0,
    decision_s=5.0,
)
SEED = 1
_CITATION = (
    "Kokolis et al.: Revisiting Reliability in Large-Scale Machine Learning Research Clusters, "
    "HPCA 2025"
)
_WORDS = (
    " What differs from `philly-energy-small` is that things break. From the literature: 0.41 "
    "failures a job (Jeon et al.: 39,776 failed trials of 96,260 jobs of Philly), at a uniform "
    "share of its work. MADE: 0.5 failures of a node a day (published: 0.0065 and 0.0023 on A100 "
    "clusters, Kokolis et al.; with these half a day of eight nodes would see none; both figures "
    "as we know the papers, whose texts were not at hand), repair in two "
    "hours; a drain in two days of a node, for two hours, known an hour ahead; a checkpoint each "
    "half hour of progress; three retries; a node is slow for 5 % of the time, at half its speed "
    "or more; true speeds and watts are off the profiles by lognormal factors (sd 0.1 and 0.05); "
    "reports are a minute late, and lost for 5 % of the time; a decision takes effect after five "
    "seconds. All of it is drawn ahead and listed in `faults` and in the jobs' `truth`."
)


def philly_faults(source: Path) -> Instance:
    """Return the instance."""
    plain = energy(source, replace(HALF_DAY, name="philly-faults"))
    title, _, rest = plain.description.partition("\n")
    made = broken(plain, BREAKAGE, SEED)
    return structs.replace(
        made,
        description=f"{title}, where nodes and jobs fail\n{rest}{_WORDS}",
        citation=f"{plain.citation}; {_CITATION}",
        made={**made.made, "recipe": "faults"},
    )
