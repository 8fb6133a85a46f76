"""What to move or stop for a waiting job, for people and for programs."""

from collections.abc import Iterator, Mapping

from msgspec.structs import asdict

from ronda.instances.snapshots.snapshot import Snapshot
from ronda.instances.tables.table import Report, Table
from ronda.questions.makeroom.actions import Action
from ronda.questions.makeroom.answer import Harm, harm_said
from ronda.questions.why.words import many

ROWS = 40
"""The largest number of actions in the table."""


def room_report(source: str, snapshot: Snapshot, harm: Harm) -> Report:
    """Return the report of the actions that make room, with their harm and its proof."""
    fields = {"cluster": source, "system": snapshot.system, **asdict(harm)}
    fields["actions"] = [asdict(action) for action in harm.actions]
    parts: list[str | Table] = [*_words(harm)]
    if len(harm.actions) > 1:
        parts.append(_table(harm.actions))
    return Report(fields, parts, list(snapshot.noted.lines()), int(not harm.possible))


def _words(harm: Harm) -> Iterator[str]:
    if not harm.possible:
        yield f"No room can be made for job {harm.job} now. {harm.reason}"
        return
    start = harm.actions[-1]
    if len(harm.actions) == 1:
        yield f"Job {harm.job} could start now on {_on(start.target)} and disturb nobody."
        return
    yield f"Job {harm.job} starts now on {_on(start.target)}, if you {harm_said(harm)}."
    if first := [action.job for action in harm.actions if action.first]:
        yield f"Before the others move, stop {', '.join(first)}."
    yield f"Proof: {_proof(harm)}"
    if harm.unknown:
        yield (
            f"Of the {many(harm.loose, 'job')} that may be disturbed, the loss of {harm.unknown} "
            f"counts as none: they hold no GPUs, or are not known to have run."
        )


MEASURES = {
    "lost": "loses less work",
    "jobs": "disturbs fewer jobs",
    "users": "disturbs fewer users",
    "stopped": "stops fewer jobs",
}
"""What another plan would do if it had less of a measure."""


def _proof(harm: Harm) -> str:
    first, *rest = harm.least
    if harm.proved:
        others = "; of those as good, none ".join(["", *(MEASURES[name] for name in rest)])
        return f"no plan {MEASURES[first]}{others}."
    open_ = [name for name in harm.least if harm.bounds[name] < harm.least[name]]
    gaps = ", ".join(f"{name} {harm.least[name]:g} (bound {harm.bounds[name]:g})" for name in open_)
    return f"time was up; better plans are possible: {gaps or 'the search is not complete'}."


def _table(actions: tuple[Action, ...]) -> Table:
    rows = [
        {
            "": k,
            "do": action.verb,
            "job": action.job,
            "user": action.user or "",
            "GPUs": f"{action.gpus:g}",
            "from": _on(action.source),
            "to": _on(action.target),
            "lost GPU-h": f"{action.lost_gpu_s / 3600:.3g}",
            "note": "stop it first" if action.first else "",
        }
        for k, action in enumerate(actions[-ROWS:], 1 + max(0, len(actions) - ROWS))
    ]
    left = len(actions) - len(rows)
    notes = [f"… after {left:,} other stops (--json lists them all)"] * bool(left)
    return Table.of("In turn", rows, notes, left=(0, 1, 2, 3, 5, 6, 8))


def _on(nodes: Mapping[str, int]) -> str:
    if not nodes:
        return ""
    each = [name if count == 1 else f"{name} ×{count}" for name, count in nodes.items()]
    more = f" and {len(each) - 8} more" if len(each) > 8 else ""
    return f"{', '.join(each[:8])}{more}"
