"""The report of ``ronda judge``: what was waited for what, with what makes it certain."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Report, Table
from ronda.questions.judge.decisions import AHEAD, CostlyDecision, Instead
from ronda.questions.judge.judged import JudgedLog, JudgedQueue
from ronda.questions.judge.judgement import CAUSES, Judgement, ReplayedQueue
from ronda.questions.why.words import hours as lasting
from ronda.questions.why.words import many

OTHERS = 8
"""The number of queues that are named besides those that were judged."""


def judge_report(found: JudgedLog) -> Report:
    """Return the report on a log: for each queue its causes, replays and worst decisions."""
    parts = list[str | Table]()
    for queue in found.queues:
        parts += _queue(found, queue)
    others = [
        f"{q.name} ({_job_hours(q.waited_s, q.waited_s)})"
        for q in found.others
        if q.waited_s >= 360
    ]
    if others:
        more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
        told = ", ".join(others[:OTHERS])
        parts.append(f"Not judged, with the job-hours they waited: {told}{more} (--queue NAME).")
    return Report(fields(found), parts, found.notes)


def fields(found: JudgedLog) -> dict[str, Any]:
    """Return the answer as fields for programs; all times are in seconds."""
    made = asdict(found)
    for queue in made["queues"]:
        del queue["clock_s"], queue["waited_s"]
        for replay in queue["judgement"]["replays"]:
            del replay["starts"]
    return made


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
        known = _between(told.same_knowledge, whole_s)
        yield (
            f"In hindsight, {_between(told.hindsight, whole_s)} of the waiting could have been "
            f"spared; on what was known when it was decided, {known}."
        )
    if told.energy_j is not None:
        yield f"These jobs drew {told.energy_j / 3.6e6:,.1f} kWh, as the log has it."
    yield _replays(told)
    yield _decisions(found, queue)
    for line in told.unknown:
        yield f"Not known: {line}"


def _between(regret: tuple[float, float], whole_s: float) -> str:
    """Return the words for an interval of regret."""
    low, high = (percent(each / whole_s) for each in regret)
    return f"{low} %" if low == high else f"between {low} % and {high} %"


def _job_hours(seconds: float, whole_s: float) -> str:
    """Return job-hours with as many digits as parts of the whole have."""
    digits = 1 if whole_s >= 3.6e6 else 2 if whole_s >= 3.6e4 else 3
    return f"{seconds / 3600:z,.{digits}f}"


def _causes(told: Judgement) -> Table:
    whole_s = told.waited_s or 1.0
    rows = [
        {
            "cause": cause.name if cause.name in CAUSES else f"of this, {cause.name}",
            "job-hours": _job_hours(cause.wait_s, whole_s),
            "%": percent(cause.wait_s / whole_s),
            "what makes it certain": cause.certain,
        }
        for cause in told.causes
    ]
    total = {
        "cause": "waited",
        "job-hours": _job_hours(told.waited_s, told.waited_s),
        "%": percent(1.0),
    }
    rows.append(total | {"what makes it certain": "The log has every start."})
    return Table.of(f"{told.queue}: what was waited for", rows, left=(0, 3))


def _replays(told: Judgement) -> Table:
    def waited(replay: ReplayedQueue) -> str:
        if replay.wait_s is None:
            return f"does not count: {many(told.jobs - replay.placed, 'job')} had no room"
        return _job_hours(replay.wait_s, told.waited_s)

    rows = [
        {
            "order": "the log",
            "space": "as it was",
            "run times": "",
            "job-hours": _job_hours(told.waited_s, told.waited_s),
        }
    ]
    rows += [
        {
            "order": replay.name,
            "space": replay.space,
            "run times": "known" if replay.foresight else "not known",
            "job-hours": waited(replay),
        }
        for replay in told.replays
    ]
    return Table.of(f"{told.queue}: the same jobs in other orders", rows, left=(0, 1, 2))


def _decisions(found: JudgedLog, queue: JudgedQueue) -> Table | str:
    if not queue.decisions:
        return "No decision is proven to have cost waiting."
    rows = (
        {
            "when": found.when(each.at_s),
            "job-hours": f"{each.cost_s / 3600:,.2f}",
            "below best": _below(each.regret),
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


def _below(regret: tuple[float, float] | None) -> str:
    if regret is None:
        return "–"
    low, high = (percent(share, ".0f") for share in regret)
    return f"{low} %" if low == high else f"{low}-{high} %"


def _instead(found: JudgedLog, told: CostlyDecision) -> str:
    """Return what should have been done, and why."""
    late, early = told.late, told.early
    if told.decisions > 1:
        least, most = (lasting(f(start.late_s for start in late)) for f in (min, max))
        return (
            f"In {told.decisions:,} decisions, {len(late):,} jobs started {least} to {most} late."
        )
    if not late:
        return f"Hold {_some(early)} back: the room was needed for wider jobs behind."
    text = f"Start {_job(found, late[0])}, which started {lasting(late[0].late_s)} later"
    return (
        f"{text}{f', before {_some(early)}' if early else ' although there was room'}{_more(late)}."
    )


def _job(found: JudgedLog, start: Instead) -> str:
    """Return a job with what it has of which nodes."""
    names = [found.nodes.get(node, f"node {node}") for node in start.nodes]
    where = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"job {start.job} ({start.size:g} on {where})"


def _some(jobs: Sequence[str]) -> str:
    return f"job {jobs[0]}" + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")


def _more(late: Sequence[Instead]) -> str:
    return f"; with it {len(late) - 1} more" if len(late) > 1 else ""
