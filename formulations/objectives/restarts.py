"""What jobs that have restarted often lose in the objectives of Pollux and Sia."""

from ronda.instances.job import JobState
from ronda.instances.round import Round

LEAST_FACTOR = 1e-9
"""Instead of a penalty that leaves nothing: such a job takes GPUs that nobody else wants."""


def restart_factor(round: Round, state: JobState, delay_s: float) -> float:
    """Return by what the speedup of anything but what a job runs on is multiplied.

    ``max(age - delay n, 0) / (age + delay)`` after n restarts; 1 before the first start.
    """
    if not state.started:
        return 1.0
    age_s = max(0.0, round.now_s - state.job.submit_s)
    if age_s + delay_s <= 0:
        return 1.0
    return max((age_s - delay_s * state.restarts) / (age_s + delay_s), LEAST_FACTOR)
