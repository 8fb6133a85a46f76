"""What the tests of this folder share."""

import pytest

from ronda.instances.job import Option
from ronda.instances.schedule import Energy, JobOutcome, Schedule, Segment


@pytest.fixture
def by_hand(two_nodes):
    """FIFO on `two_nodes`: a at 0-100 on node 0; b at 100-150 on both; c at 150-160."""

    def one(name, submit_s, start_s, end_s, gpus, placement):
        option = Option(pool=0, gpus=gpus, power_w=60.0 * gpus)
        segment = Segment(
            start_s=start_s,
            resume_s=start_s,
            end_s=end_s,
            done=end_s - start_s,
            option=option,
            placement=placement,
        )
        return JobOutcome(id=name, submit_s=submit_s, end_s=end_s, segments=(segment,))

    return Schedule(
        instance=two_nodes.name,
        fingerprint="0" * 16,
        policy="fifo",
        jobs=(
            one("a", 0.0, 0.0, 100.0, 2, ((0, 2),)),
            one("b", 0.0, 100.0, 150.0, 8, ((0, 4), (1, 4))),
            one("c", 10.0, 150.0, 160.0, 1, ((0, 1),)),
        ),
        energy=Energy(),
        end_s=160.0,
    )
