"""What the tests of trace readers share."""

import pytest


@pytest.fixture
def jobs_of():
    """Return a function that returns (id, submission, GPUs, true seconds) of every job."""

    def look(instance):
        return [(j.id, j.submit_s, j.gpus, j.truth.work) for j in instance.jobs]

    return look
