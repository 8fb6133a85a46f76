"""What a log says about itself, for people and for programs."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Report, Table
from ronda.instances.traces.audit.coverage import Hole, LogEnds, ends_of, holes
from ronda.instances.traces.audit.jobs import Holder, JobFacts, facts_of
from ronda.instances.traces.audit.pools import LONG_S, PoolUse, pools_of
from ronda.instances.traces.audit.sample import sample_of
from ronda.instances.traces.logs.instance import ReadLog

DATED_S = 1e9
"""A clock of the Unix epoch is at least here; others count from a trace's own start."""

KINDS = {
    "doubles": ("the same ", "a run that begins before the one", "a run without an end before"),
    "impossible times": (
        *("a start before", "an end before", "a run time longer", "a run time that is not"),
        *("times more than", "no time of", "no time in"),
    ),
    "unreadable": ("a cell that", "a row that", "a line that", "a list of tasks"),
    "never ran": ("never started", "waits or was given up", "no run time"),
}
"""Kinds of dropped rows, by how their reasons begin."""


@dataclass(frozen=True)
class Audit:
    """What a log says about itself; times are seconds from the instance's start, `base_s`.

    Attributes
    ----------
    read, base_s
        The log, and its start in seconds since 1970, or on its own clock.
    first_s, last_s
        First and last submission.
    rows
        Rows that are not jobs, by kind.
    holes, ends
        What is missing within the log and at its ends.
    pools
        Demand, use and capacity by pool.
    facts
        What it says of its jobs.
    sample
        Why it is a sample of what ran, or None.
    """

    read: ReadLog
    base_s: float
    first_s: float
    last_s: float
    rows: dict[str, int]
    holes: tuple[Hole, ...]
    ends: LogEnds
    pools: tuple[PoolUse, ...]
    facts: JobFacts
    sample: str | None

    def when(self, at_s: float) -> str:
        """Return a moment as a date, or as a day of the log's own clock."""
        if self.base_s + at_s > DATED_S:
            moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=round(self.base_s + at_s))
            return moment.strftime("%Y-%m-%d %H:%M")
        day, second = divmod(round(self.base_s + at_s), 86400)
        return f"day {day}, {second // 3600:02}:{second // 60 % 60:02}"

    def months(self) -> list[str]:
        """Return the calendar months that lie in a hole as a whole."""
        found = list[str]()
        for hole in self.holes if self.base_s > DATED_S else ():
            ends = (self.base_s + hole.start_s, self.base_s + hole.end_s)
            first, last = (datetime.fromtimestamp(end, UTC) for end in ends)
            span = range(first.year * 12 + first.month, last.year * 12 + last.month - 1)
            found += [f"{month // 12}-{month % 12 + 1:02}" for month in span]
        return found

    def report(self, source: str) -> Report:
        """Return the report for people and programs."""
        return Report(self._fields(source), [*self._parts(source)])

    def _fields(self, source: str) -> dict[str, Any]:
        account = self.read.account
        return {
            "file": source,
            "rows": account.rows,
            "jobs": len(self.read.instance.jobs),
            "unix_start_s": self.base_s,
            "first_s": self.first_s,
            "last_s": self.last_s,
            "until_s": self.read.recorded.until_s,
            "kinds": self.rows,
            "dropped": account.dropped,
            "examples": account.dropped.examples,
            "folded": account.folded,
            "holes": [asdict(hole) for hole in self.holes],
            "months_missing": self.months(),
            "ends": asdict(self.ends),
            "machines": self.read.machines,
            "pools": [
                {each.name: getattr(pool, each.name) for each in fields(pool) if each.repr}
                for pool in self.pools
            ],
            "facts": asdict(self.facts),
            "sample": self.sample,
            "notes": self.read.instance.made["notes"],
        }

    def _parts(self, source: str) -> Iterator[str | Table]:
        facts, jobs = self.facts, self.read.instance.jobs
        days = (self.last_s - self.first_s) / 86400
        yield (
            f"{source}: {self.read.account.rows:,} rows, {len(jobs):,} jobs, submitted within "
            f"{days:,.1f} days, {self.when(self.first_s)} to {self.when(self.last_s)}"
        )
        dropped = self.read.dropped
        kinds = {why: _kind(why) for why in dropped}
        yield Table.of(
            "",
            (
                {
                    "rows that are no jobs": f"{count:,}",
                    "kind": kinds[why],
                    "because of": why,
                    "as in": dropped.examples[why],
                }
                for why, count in dropped.most_common()
            ),
            left=(1, 2, 3),
        )
        yield from self._covered()
        yield self._used()
        yield from self._overloaded()
        yield from self._jobs(facts)
        yield f"a sample: {self.sample}" if self.sample else self._whole()

    def _covered(self) -> Iterator[str]:
        for hole in sorted(self.holes, key=lambda each: each.start_s - each.end_s)[:5]:
            days = (hole.end_s - hole.start_s) / 86400
            yield (
                f"hole: no submission for {days:,.1f} days from {self.when(hole.start_s)}; "
                f"{hole.expected:.1g} such were to be expected"
            )
        if len(self.holes) > 5:
            yield f"holes in all: {len(self.holes):,}"
        if months := self.months():
            yield f"months without a submission: {', '.join(months)}"
        if not self.holes:
            yield "holes: none that the log's own week does not explain"
        ends = self.ends
        for at_s, word, missing in (
            (ends.only_ended_from_s, "from", "before"),
            (ends.only_ended_until_s, "until", "after"),
        ):
            if at_s is not None:
                yield (
                    f"cut off: it has only jobs that ended {word} {self.when(at_s)}; those that "
                    f"ended {missing} are missing"
                )
        if ends.running:
            yield f"running when it ends: {ends.running:,} jobs"
        if ends.half_from_s is not None and ends.half_until_s is not None:
            yield (
                f"in use: half of the usual GPUs or more from {self.when(ends.half_from_s)} to "
                f"{self.when(ends.half_until_s)}; before and after, some that ran may be missing"
            )
        if self.facts.twins:
            yield f"doubles: {self.facts.twins:,} jobs equal another in all told of them but the id"
        if self.facts.future:
            yield f"times after the present: {self.facts.future:,} jobs"

    def _used(self) -> Table:
        sign = {"given": "", "seen": "≥ ", "unknown": ""}[self.read.machines]
        rows = (
            {
                "pool": pool.name,
                "GPUs": "?" if pool.gpus is None else f"{sign}{pool.gpus:,}",
                "jobs": f"{pool.jobs:,}",
                "GPU-hours": f"{pool.gpu_hours:,.1f}",
                "load": "?" if pool.load is None else f"{pool.load:.2f}",
                "wanted at most": f"{pool.most_wanted:,}",
                "in use at most": "?" if pool.most_held is None else f"{pool.most_held:,}",
                "overloaded (h)": _hours(pool),
                "behind at most (GPU-hours)": f"{pool.overloads[0].most_gpu_s / 3600:,.1f}"
                if pool.overloads
                else "0"
                if pool.gpus
                else "?",
            }
            for pool in self.pools
        )
        return Table.of("", rows)

    def _overloaded(self) -> Iterator[str]:
        """Say until when work is behind whatever is done."""
        if self.read.machines == "unknown":
            yield "capacity: unknown, as no start is told; --cluster says what there was"
        if self.read.machines == "seen":
            yield (
                "capacity: what the log shows in use, a lower bound; overloads are certain only if "
                "there was no more (--cluster, --slurm)"
            )
        for pool in self.pools:
            long = [o for o in pool.overloads if o.most_gpu_s >= LONG_S * (pool.gpus or 1)]
            if not long:
                continue
            most, last = long[0], max(long, key=lambda each: each.end_s)
            more = "" if last is most else f"; the last of {len(long)} ends {self.when(last.end_s)}"
            late = " (after the log's end)" if last.end_s > self.read.recorded.until_s else ""
            yield (
                f"overload of {pool.name}: whatever the scheduler does, work is behind from "
                f"{self.when(most.start_s)} to {self.when(most.end_s)}, at most "
                f"{most.most_gpu_s / 3600:,.1f} GPU-hours at {self.when(most.most_at_s)}"
                f"{more}{late}"
            )

    def _jobs(self, facts: JobFacts) -> Iterator[str | Table]:
        jobs = self.read.instance.jobs
        hours = self.pools[0].gpu_hours or 1.0
        if facts.users:
            yield _holders(f"of {facts.users:,} users", facts.top_users, len(jobs), hours)
        else:
            yield "users: not named"
        title = f"of {facts.shapes:,} shapes, which look alike to a scheduler"
        yield _holders(title, facts.top_shapes, len(jobs), hours)
        if facts.limits is None:
            yield "time limits: none"
        else:
            low, mid, high = facts.limits.times
            yield (
                f"time limits: {facts.limits.jobs:,} jobs have one, {low:,.1f}, {mid:,.1f} and "
                f"{high:,.1f} times the run time (tenth, median, ninth tenth); "
                f"{percent(facts.limits.within_twice)} % at most twice, "
                f"{percent(facts.limits.killed)} % were ended by it"
            )
        if facts.states:
            told = (f"{state} {count:,}" for state, count in facts.states.items())
            yield f"runs by state: {', '.join(told)}"
        if facts.again:
            yield (
                f"ran more than once: {facts.again:,} jobs; {facts.again_gpu_hours:,.1f} GPU-hours "
                "of earlier runs"
            )
        if facts.later:
            yield (
                f"eligible after submission: {facts.later:,} jobs, {facts.later_hours:,.1f} hours "
                "that are no one's queueing"
            )
        if facts.started:
            yield (
                f"waits: {facts.waited:,} of {facts.started:,} jobs more than a minute, "
                f"{facts.waited_hours:,.1f} job-hours in all"
            )

    def _whole(self) -> str:
        if self.read.machines == "given" and self.facts.started:
            return "a sample: no sign of it"
        return "a sample: cannot be told without the machines and starts (--cluster, --slurm)"


def _hours(pool: PoolUse) -> str:
    if pool.gpus is None:
        return "?"
    return f"{sum(each.end_s - each.start_s for each in pool.overloads) / 3600:,.1f}"


def _holders(title: str, holders: tuple[Holder, ...], jobs: int, hours: float) -> Table:
    rows = []
    for each in holders:
        row = {
            title: each.name,
            "jobs": f"{each.jobs:,}",
            "%": percent(each.jobs / jobs),
            "GPU-hours": f"{each.gpu_hours:,.1f}",
            "% of all": percent(each.gpu_hours / hours),
        }
        if each.run_s:
            row["run time (s): tenth, median, ninth tenth"] = " ".join(
                f"{s:,.0f}" for s in each.run_s
            )
        rows.append(row)
    return Table.of("", rows)


def _kind(why: str) -> str:
    """Return the kind of a reason for which a row is no job."""
    return next((kind for kind, heads in KINDS.items() if why.startswith(heads)), "other")


def audit_log(read: ReadLog, now_s: float) -> Audit:
    """Return what a log says about itself; `now_s` is the present in seconds since 1970."""
    submit_s = np.sort([job.submit_s for job in read.instance.jobs])
    pools = tuple(pools_of(read))
    rows = dict.fromkeys(KINDS, 0)
    for why, count in read.dropped.items():
        rows[_kind(why)] = rows.get(_kind(why), 0) + count
    return Audit(
        read=read,
        base_s=read.instance.made.get("unix_start_s", 0.0),
        first_s=float(submit_s[0]),
        last_s=float(submit_s[-1]),
        rows=rows,
        holes=tuple(holes(submit_s)),
        ends=ends_of(read, pools[0].held_s, pools[0].held),
        pools=pools,
        facts=facts_of(read, now_s),
        sample=sample_of(read),
    )
