"""What the tests of trace readers share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Return a function that writes lines to a file and returns its path."""

    def writer(*lines, name="trace.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return writer


@pytest.fixture
def jobs_of():
    """Return a function that returns (id, submission, GPUs, true seconds) of every job."""

    def look(instance):
        return [(j.id, j.submit_s, j.gpus, j.truth.work) for j in instance.jobs]

    return look
