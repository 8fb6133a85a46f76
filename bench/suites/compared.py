"""``ronda.compare``: a comparison from Python that returns tables for notebooks."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ronda.bench.runs.compare import Comparison
from ronda.bench.runs.folder import claim, write_kept
from ronda.bench.runs.results import records, write_runs
from ronda.bench.runs.specs import split_policies
from ronda.bench.runs.worker import RunLimits
from ronda.bench.suites.cells import expand
from ronda.bench.suites.suite import Suite
from ronda.bench.suites.summary import comparison_report
from ronda.bench.tables import write_tables
from ronda.instances.arguments import checked
from ronda.instances.base import Count, Index, Positive
from ronda.instances.errors import InputError
from ronda.instances.instance import DECLARED, Instance, Knowledge
from ronda.instances.tables.table import Table


@dataclass(frozen=True, repr=False)
class Compared:
    """The results of a comparison; a notebook shows its tables.

    Attributes
    ----------
    tables
        The tables as `ronda compare` prints them: one for each instance, and one for all together.
    rows
        The means over seeds for each instance and policy, with the names of ``--json``.
    runs
        The subject, end and metrics of each run: the rows of ``results.csv``.
    """

    tables: tuple[Table, ...]
    rows: tuple[dict[str, Any], ...]
    runs: tuple[dict[str, Any], ...]

    def __repr__(self) -> str:
        """Return the tables as Markdown."""
        return "\n".join(table.markdown() for table in self.tables)

    def _repr_html_(self) -> str:
        """Return the tables as HTML."""
        return "\n".join(table.html() for table in self.tables)


@checked
def compare(
    instances: str | Path | Instance | Sequence[str | Path | Instance],
    policies: str | Sequence[str],
    *,
    seeds: Sequence[Index] = (0,),
    knowledge: Sequence[Knowledge] = (DECLARED,),
    time_limit_s: Positive = 10.0,
    timeout_s: Positive = 3600.0,
    memory_mib: Positive = 4096.0,
    jobs: Count | None = None,
    out: str | Path | None = None,
) -> Compared:
    """Compare policies on whole instances, each run in its own process.

    Parameters
    ----------
    instances
        Packaged names, files, or instances.
    policies
        Policies as on the command line: names with parameters, ``"./mine.py:Mine"`` for your own.
    seeds
        Seeds; a deterministic policy of ronda's own runs only with the first.
    knowledge
        Levels of the policies' knowledge of jobs, to compare with each other: see `run`.
    time_limit_s
        The limit for each decision, in seconds.
    timeout_s, memory_mib
        The limits for each run; a run that exceeds them is stopped and counts as failed.
    jobs
        The number of parallel runs; None means one per core.
    out
        The folder for results, schedules and tables, as for `ronda compare`; runs that it already
        has are not repeated. None keeps nothing.

    Raises
    ------
    InputError
        If an instance or a policy cannot be used, or the folder holds other content.
    """
    given = [instances] if isinstance(instances, str | Path | Instance) else instances
    for name, some in {"seeds": seeds, "knowledge": knowledge}.items():
        if not some:
            raise InputError(name, "none", "at least one")
    names = split_policies(policies if isinstance(policies, str) else ",".join(policies))
    with TemporaryDirectory() as temporary:
        folder = Path(temporary if out is None else out)
        with claim(folder, "comparison"):
            words = (str(write_kept(folder, e) if isinstance(e, Instance) else e) for e in given)
            suite = Suite(
                instances=tuple(dict.fromkeys(words)),
                policies=names,
                knowledge=tuple(dict.fromkeys(knowledge)),
                seeds=",".join(map(str, seeds)),
                time_limit_s=time_limit_s,
            )
            expanded = expand(suite, folder)
            limits = RunLimits(timeout_s, memory_mib)
            done = Comparison(folder, limits, jobs or os.cpu_count() or 1).run(expanded.cases)
            told, _ = comparison_report(None, expanded, {result.key: result for result in done})
            write_tables(told.tables, folder)
            write_runs(done, folder, parquet=False)
    rows = (
        {"instance": each["instance"]} | row
        for each in told.fields["instances"]
        for row in each["policies"]
    )
    return Compared(tuple(told.tables), tuple(rows), tuple(records(done)))
