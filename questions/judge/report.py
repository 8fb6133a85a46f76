"""The report of ``ronda judge``: what was waited for what, with what makes it certain."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from math import inf

from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Report, Table
from ronda.questions.judge.decisions import AHEAD, CostlyDecision, Instead
from ronda.questions.judge.judged import LOG, JudgedLog, JudgedQueue
from ronda.questions.judge.judgement import CAUSES, Judgement, WaitCause
from ronda.questions.why.words import hours as lasting
from ronda.questions.why.words import many

OTHERS = 8
"""The number of queues that are named besides those that were judged."""


def judge_report(found: JudgedLog) -> Report:
    """Return the report on a log: for each queue its causes, replays and worst decisions."""
    parts = list[str | Table]()
    for queue in found.queues:
        parts += _queue(found, queue)
    seen = [queue for queue in found.others if queue.waited_s >= 360 and "/" not in queue.name]
    others = [f"{each.name} ({_job_hours(each.waited_s, each.waited_s)})" for each in seen]
    if others:
        more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
        told = ", ".join(others[:OTHERS])
        parts.append(f"Not judged, with the job-hours they waited: {told}{more} (--queue NAME).")
    made = asdict(found)
    for queue in made["queues"]:
        del queue["clock_s"], queue["waited_s"]
        for replay in queue["judgement"]["replays"]:
            replay["placed"] = len(replay.pop("starts"))
    return Report(made, parts, found.notes)


def _queue(found: JudgedLog, queue: JudgedQueue) -> Iterator[str | Table]:
    told = queue.judgement
    (low_s, high_s), whole_s = told.window_s, told.waited_s
    yield (
        f"Queue {told.queue}: {told.jobs:,} jobs that started from {found.when(low_s)} to "
        f"{found.when(high_s)} waited {_job_hours(whole_s, whole_s)} job-hours, "
        f"{whole_s / 3600 / max(1, told.jobs):,.2f} h each. {told.trusted_why}"
    )
    yield _causes(told)
    if whole_s > 0:
        hindsight, known = (
            _range((each / whole_s for each in regret), ",.1f", "between {} % and {} %")
            for regret in (told.hindsight, told.same_knowledge)
        )
        yield (
            f"In hindsight, {hindsight} of the waiting could have been spared; on what was known "
            f"when it was decided, {known}."
        )
    if told.energy_j is not None:
        yield f"The nodes of these jobs drew {told.energy_j / 3.6e6:,.1f} kWh for them."
    yield _replays(told)
    yield _decisions(found, queue)
    yield f"It rests on this: The log holds every job that ended from {found.when(low_s)} on."
    for line in told.rests_on:
        yield f"It rests on this: {line}"
    for line in told.unknown:
        yield f"Not known: {line}"


def _range(shares: Iterable[float], digits: str, words: str) -> str:
    """Return the least and the most of something in words; one share if they read alike."""
    low, high = (percent(share, digits) for share in shares)
    return f"{low} %" if low == high else words.format(low, high)


def _job_hours(seconds: float, whole_s: float) -> str:
    """Return job-hours with as many digits as parts of the whole have."""
    digits = 1 if whole_s >= 3.6e6 else 2 if whole_s >= 3.6e4 else 3
    return f"{seconds / 3600:z,.{digits}f}"


def _causes(told: Judgement) -> Table:
    whole_s = told.waited_s or 1.0
    named = [("" if c.name in CAUSES else "of this, ", c) for c in told.causes]
    named.append(("", WaitCause("waited", told.waited_s, "The log has every start.")))
    rows = (
        {
            "cause": f"{before}{cause.name}",
            "job-hours": _job_hours(cause.wait_s, whole_s),
            "%": percent(cause.wait_s / whole_s),
            "what makes it certain": cause.certain,
        }
        for before, cause in named
    )
    return Table.of(f"{told.queue}: what was waited for", rows, left=(0, 3))


def _replays(told: Judgement) -> Table:
    rows = [(LOG, "as it was", "", _job_hours(told.waited_s, told.waited_s))]
    for replay in told.replays:
        waited = _job_hours(replay.wait_s, told.waited_s)
        if replay.wait_s == inf:
            waited = f"does not count: {many(told.jobs - len(replay.starts), 'job')} had no room"
        known = "known" if replay.foresight else "not known"
        rows.append((replay.name, replay.space, known, waited))
    title = f"{told.queue}: the same jobs in other orders"
    return Table(title, ("order", "space", "run times", "job-hours"), (*rows,), left=(0, 1, 2))


def _decisions(found: JudgedLog, queue: JudgedQueue) -> Table | str:
    if not queue.decisions:
        return "No decision is proven to have cost waiting."
    rows = (
        {
            "when": found.when(each.at_s),
            "job-hours": f"{each.cost_s / 3600:,.2f}",
            "below best": _range(each.regret, ".0f", "{}-{} %") if each.regret else "–",
            "instead": _instead(found, each),
        }
        for each in queue.decisions
    )
    title = f"{queue.judgement.queue}: what cost the most, worst first"
    spared = (
        f"job-hours: what the next {AHEAD} jobs wait less if the rule '{queue.decisions[0].rule}', "
        "which sees no run times, decides from then on and not only from the next decision on"
    )
    return Table.of(title, rows, [spared, _BELOW], left=(0, 3))


_BELOW = (
    "below best: of a plan for that moment alone, by time limits, from that of the best plan found "
    "to a bound that is certified"
)


def _instead(found: JudgedLog, told: CostlyDecision) -> str:
    late, early = told.late, told.early
    if told.decisions > 1:
        least, most = (lasting(f(start.late_s for start in late)) for f in (min, max))
        return (
            f"In {told.decisions:,} decisions, {len(late):,} jobs started {least} to {most} late."
        )
    if not late:
        return f"Hold {_some(early)} back: the room was needed for wider jobs behind."
    before = f", before {_some(early)}" if early else " although there was room"
    more = f"; with it {len(late) - 1} more" if len(late) > 1 else ""
    lasts = lasting(late[0].late_s)
    return f"Start {_job(found, late[0])}, which started {lasts} later{before}{more}."


def _job(found: JudgedLog, start: Instead) -> str:
    names = [found.nodes.get(node, f"node {node}") for node in start.nodes]
    where = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"job {start.job} ({start.size:g} on {where})"


def _some(jobs: Sequence[str]) -> str:
    return f"job {jobs[0]}" + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")
