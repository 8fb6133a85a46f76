"""What jobs need at least."""

import pytest

from ronda.formulations.bounds.least_needs import needs
from ronda.instances.files.packaged import load


def test_needs_of_a_tabular_job_by_hand():
    """160 samples: fastest on 4 GPUs (2/s, 80 s), most frugal on 1 GPU (160 GPU-seconds)."""
    need = needs(load("two-jobs"))
    assert need.seconds == pytest.approx([80, 200])
    assert need.gpu_s == pytest.approx([160, 400])
