"""What a log says about itself, for people and for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from msgspec import to_builtins

from ronda.instances.tables.numbers import DATED_S, hours, moment, percent
from ronda.instances.tables.table import Report, Table
from ronda.instances.traces.audit.coverage import holes, only_ended
from ronda.instances.traces.audit.jobs import SHOWN, Holder, facts_of
from ronda.instances.traces.audit.pools import LONG_S, PoolUse, lasting, pools_of
from ronda.instances.traces.audit.sample import sample_of
from ronda.instances.traces.logs.instance import ReadLog

MOST = 12
"""The most pools that are shown in the text; those whose jobs ask for most."""

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

ENDS = ("from", "until"), ("before", "after")


class Audit:
    """What a log says about itself, in seconds from the instance's start, which is `base_s`.

    `rows` are those that are no jobs, by kind. `ended` is from and until when the log has only jobs
    that ended, None where it does not look so. `now_s` is the present in seconds since 1970; dates
    are told in the time zone `zone`.
    """

    def __init__(self, read: ReadLog, now_s: float, zone: str = "UTC") -> None:
        submit_s = np.sort([job.submit_s for job in read.instance.jobs])
        self.read, self.zone = read, zone
        self.base_s = float(read.instance.made.get("unix_start_s", 0.0))
        self.first_s, self.last_s = float(submit_s[0]), float(submit_s[-1])
        self.rows = Counter(_kind(why) for why in read.dropped.elements())
        self.holes, self.ended = [*holes(submit_s)], only_ended(read.recorded)
        self.pools, self.facts = pools_of(read), facts_of(read, now_s)
        self.sample = sample_of(read, self.pools)

    def when(self, at_s: float) -> str:
        """Return a moment as a date, or as a day of the log's own clock."""
        return moment(self.base_s + at_s, self.zone)

    def months(self) -> list[str]:
        """Return the calendar months that lie in a hole as a whole."""
        found = list[str]()
        for hole in self.holes if self.base_s > DATED_S else ():
            ends = self.base_s + np.array([hole.start_s, hole.end_s])
            first, last = ends.astype("M8[s]").astype("M8[M]")
            found += map(str, np.arange(first + 1, last))
        return found

    def report(self, source: str) -> Report:
        """Return the report for people and programs."""
        account = self.read.account
        told: dict[str, Any] = {
            "file": source,
            "rows": account.rows,
            "jobs": len(self.read.instance.jobs),
            "unix_start_s": self.base_s,
            "first_s": self.first_s,
            "last_s": self.last_s,
            "until_s": self.read.recorded.until_s,
            "kinds": dict.fromkeys(KINDS, 0) | self.rows,
            "dropped": account.dropped,
            "examples": account.dropped.examples,
            "folded": account.folded,
            "holes": [asdict(hole) for hole in self.holes],
            "months_missing": self.months(),
            "only_ended_from_s": self.ended[0],
            "only_ended_until_s": self.ended[1],
            "machines": self.read.machines,
            "pools": [
                {each.name: getattr(pool, each.name) for each in fields(pool) if each.repr}
                for pool in self.pools
            ],
            "sample": self.sample,
            "notes": self.read.instance.made["notes"],
        }
        return Report(told | to_builtins(self.facts), [*self._parts(source)], told["notes"])

    def _parts(self, source: str) -> Iterator[str | Table]:
        jobs, facts = len(self.read.instance.jobs), self.facts
        yield (
            f"{source}: {self.read.account.rows:,} rows, {jobs:,} jobs, submitted from "
            f"{self.when(self.first_s)} to {self.when(self.last_s)}"
        )
        dropped = self.read.dropped
        rows = ((_kind(why), f"{n:,}", why, dropped.examples[why]) for why, n in dropped.items())
        if dropped:
            yield Table("", ("no jobs", "rows", "because of", "as in"), (*rows,), left=(0, 2, 3))
        yield Table.facts({name: text for name, text in self._covered() if text})
        yield Table.of("", map(self._used, self.pools[:MOST]))
        yield from self._overloads()
        if facts["users"]:
            yield self._holders(f"of {facts['users']:,} users", facts["top_users"])
        sizes, shapes = facts["sizes"], facts["top_shapes"]
        yield self._holders(f"GPUs, of {len(sizes):,} sizes", sizes[:SHOWN])
        yield self._holders(f"of {facts['shapes']:,} shapes that look alike", shapes)
        yield Table.facts({name: text for name, text in self._told() if text})

    def _covered(self) -> Iterator[tuple[str, str]]:
        longest = sorted(self.holes, key=lambda each: each.start_s - each.end_s)
        for k, hole in enumerate(longest[:5], 1):
            days = (hole.end_s - hole.start_s) / 86400
            yield (
                f"hole {k} of {len(longest)}",
                f"no submission for {days:,.1f} days from {self.when(hole.start_s)}; "
                f"{hole.expected:.1g} such were to be expected",
            )
        yield "holes", "" if longest else "none that the log's own week does not explain"
        yield "months without a job", ", ".join(self.months())
        for at_s, where, lost in zip(self.ended, *ENDS, strict=True):
            if at_s is not None:
                words = f"only jobs that ended {where} {self.when(at_s)}; those {lost} are missing"
                yield f"cut off {lost}", words
        twins, future = map(self._of_all, (self.facts["twins"], self.facts["future"]))
        yield "doubles", twins and f"{twins} equal another in all but the id"
        yield "after the present", future and f"{future} have a later time"
        yield (
            "sample",
            self.sample
            or (
                "no sign of it"
                if self.read.machines == "given" and self.facts["started"]
                else "cannot be told without machines (--cluster, --slurm) and starts"
            ),
        )

    def _used(self, pool: PoolUse) -> dict[str, str]:
        least = "≥ " if self.read.machines == "seen" else ""
        late_s = sum(each.end_s - each.start_s for each in pool.overloads)
        peak_s = pool.overloads[0].most_gpu_s if pool.overloads else 0.0
        return {
            "pool": pool.name,
            "GPUs": "?" if pool.gpus is None else f"{least}{pool.gpus:,}",
            "jobs": f"{pool.jobs:,}",
            "waited": f"{pool.waited:,}",
            "GPU-hours": f"{pool.gpu_hours:,.1f}",
            "load": "?" if pool.load is None else f"{pool.load:.2f}",
            "wanted at most": f"{pool.most_wanted:,}",
            "in use at most": "?" if pool.most_held is None else f"{pool.most_held:,}",
            "overloaded (h)": "?" if pool.gpus is None else hours(late_s),
            "behind, peak (GPU-h)": "?" if pool.gpus is None else f"≥ {hours(peak_s)}",
        }

    def _overloads(self) -> Iterator[str]:
        """Say until when work is behind whatever is done."""
        if self.read.machines == "unknown":
            yield "capacity: unknown, as no start is told; --cluster says what there was"
        if self.read.machines == "seen":
            yield (
                "capacity: what the log shows of nodes, a lower bound; overloads are certain if "
                "there was no more of it (--cluster, --slurm)"
            )
        for pool in self.pools:
            long = [o for o in pool.overloads if o.most_gpu_s >= LONG_S * (pool.gpus or 1)]
            for most in long[:1]:
                last_s = max(each.end_s for each in long)
                more = f"; the last of {len(long)} ends {self.when(last_s)}" if long[1:] else ""
                late = " (after the log's end)" if last_s > self.read.recorded.until_s else ""
                yield (
                    f"overload of {pool.name}: whatever the scheduler does, work is behind from "
                    f"{self.when(most.start_s)} to {self.when(most.end_s)}, "
                    f"{hours(most.most_gpu_s)} GPU-hours or more of it at "
                    f"{self.when(most.most_at_s)}{more}{late}"
                )

    def _told(self) -> Iterator[tuple[str, str]]:
        facts, jobs = self.facts, self.read.instance.jobs
        times = ", ".join(f"{each:,.1f}" for each in facts["limit_times"])
        limits = (
            f"of {facts['limited']:,} jobs, {times} times the run time (tenth, median, ninth "
            f"tenth); {percent(facts['within_twice'])} % at most twice, {percent(facts['killed'])} "
            "% ended by it"
        )
        yield "time limits", limits if times else "none"
        yield "runs by state", ", ".join(f"{state} {n:,}" for state, n in facts["states"].items())
        without = self._of_all(sum(lasting(self.read.instance, job) == 0 for job in jobs))
        words = f"of {without} not told, or by their number of GPUs, so not in the demand"
        yield "run time", without and words
        later, words = self._of_all(facts["later"]), "hours that are no one's queueing"
        yield "eligible later", later and f"{later}, {facts['later_hours']:,.1f} {words}"
        waits = (
            f"{facts['waited']:,} of {facts['started']:,} jobs more than a minute, "
            f"{facts['waited_hours']:,.1f} job-hours in all"
        )
        yield "waits", waits if facts["started"] else ""

    def _of_all(self, jobs: int) -> str:
        return f"{jobs:,} of {len(self.read.instance.jobs):,} jobs" if jobs else ""

    def _holders(self, title: str, holders: Sequence[Holder]) -> Table:
        jobs, all_hours = len(self.read.instance.jobs), self.pools[0].gpu_hours or 1.0
        rows = (
            {
                title: each.name,
                "jobs": f"{each.jobs:,}",
                "%": percent(each.jobs / jobs),
                "GPU-hours": f"{each.gpu_hours:,.1f}",
                "% of all": percent(each.gpu_hours / all_hours),
                "run time (s): tenth, median, ninth tenth": " ".join(
                    f"{s:,.0f}" for s in each.run_s
                ),
            }
            for each in holders
        )
        return Table.of("", rows)


def _kind(why: str) -> str:
    """Return the kind of a reason for which a row is no job."""
    return next((kind for kind, heads in KINDS.items() if why.startswith(heads)), "other")
