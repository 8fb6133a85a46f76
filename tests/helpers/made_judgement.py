"""A judged log whose every figure is written down."""

from math import inf

from ronda.questions.judge.decisions import CostlyDecision, Instead
from ronda.questions.judge.judged import LOG, JudgedLog, JudgedQueue
from ronda.questions.judge.judgement import (
    CAUSES,
    PROVEN,
    Judgement,
    QueueSeen,
    ReplayedQueue,
    WaitCause,
)

HOUR_S = 3600.0
PARTS_H = {"gpu": (15, -1, 20, 6, 4, 56), "<b>cpu</b>": (0, 0, 8, 0, 0, 2)}
"""Job-hours by cause, in the order of `CAUSES`: 100 and 10."""
STARTS, FEWER = ({f"{k}": (0.0, (0,)) for k in range(count)} for count in (50, 47))
"""The starts of all jobs, and of all but three."""


def made_queue(name):
    """Return the judgement of a queue."""
    parts_s = [hours * HOUR_S for hours in PARTS_H[name]]
    waited_s = sum(parts_s)
    same_s, policy_s = waited_s - parts_s[0], waited_s - sum(parts_s[:2])
    best_s = policy_s - parts_s[2]
    judgement = Judgement(
        energy_j=None,
        queue=name,
        jobs=50,
        window_s=(0.0, 40 * HOUR_S),
        trusted_why="The window ends where less than 90 % of the nodes is proven.",
        waited_s=waited_s,
        causes=tuple(
            WaitCause(cause, part_s, f"Of {cause}.")
            for cause, part_s in zip(CAUSES, parts_s, strict=True)
        ),
        hindsight=(waited_s - best_s, waited_s - parts_s[-1]),
        same_knowledge=(waited_s - policy_s, waited_s - parts_s[-1]),
        replays=(
            ReplayedQueue("same order", PROVEN, False, same_s, STARTS),
            ReplayedQueue("least work first", PROVEN, False, policy_s, STARTS),
            ReplayedQueue("shortest first", PROVEN, True, best_s, STARTS),
            ReplayedQueue("widest first", PROVEN, False, inf, FEWER),
        ),
        rests_on=(),
        unknown=("Limits of users.",),
    )
    late = Instead("77", 8.0, HOUR_S, (3,), 3 * HOUR_S)
    told = CostlyDecision(
        rule="least work first",
        at_s=HOUR_S,
        until_s=2 * HOUR_S,
        decisions=1,
        cost_s=7 * HOUR_S,
        started=("76",),
        instead=(late,),
        regret=(0.1, 0.2),
    )
    curves = {LOG: (0.0, waited_s), "same order": (0.0, same_s), "shortest first": (0.0, best_s)}
    return JudgedQueue(judgement, (told,), (0.0, 40 * HOUR_S), curves)


MADE = JudgedLog(
    source="march.txt",
    began_s=1_774_224_000.0,
    zone="Europe/Berlin",
    nodes={3: "n4"},
    queues=tuple(map(made_queue, PARTS_H)),
    others=(QueueSeen("debug", 9, 1, 3 * HOUR_S),),
    notes=("rows: 100",),
)
