"""A policy of one's own beside one of ronda's, on the same day."""

import ronda
from ronda.instances import generate
from ronda.solvers.greedy.room import Room, start_in_order


class Widest:
    """What runs goes on; of those that wait the widest start first."""

    def plan(self, round, *, deadline, seed, initial=None):
        """Return who runs now."""
        order = sorted(round.waiting, key=lambda state: -state.job.gpus)
        started = start_in_order(Room(round, round.running), order)
        return ronda.Plan(policy=self.name, allocations=round.held | started)


day = generate.horizon(12, 16, "loose", seed=0)
for name, policy in {"Widest": Widest(), "fifo": "fifo"}.items():
    schedule = ronda.run(day, policy)
    assert ronda.check(day, schedule) == []
    print(name, ronda.summarise(day, schedule)["mean_jct_s"], "s mean completion time")
