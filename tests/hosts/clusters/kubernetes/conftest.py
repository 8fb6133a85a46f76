"""Clusters of Kubernetes, from objects that are put together in the tests."""

import json
from pathlib import Path

import pytest

from ronda.hosts.clusters.read import read_snapshot

HERE = Path(__file__).parent


@pytest.fixture
def seen(tmp_path):
    """Return a function that reads objects as one file, or texts as files."""

    def read(system, *parts, now_s=None):
        files = []
        for k, part in enumerate(parts):
            if isinstance(part, Path):
                files.append(part)
                continue
            files.append(tmp_path / f"f{k}")
            text = part if isinstance(part, str | bytes) else json.dumps(part)
            files[-1].write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_snapshot(system, files, now_s)

    return read


@pytest.fixture
def kueue_yaml():
    """Return the file of a cluster of Kueue."""
    return HERE / "kueue.yaml"


@pytest.fixture
def kai_json():
    """Return the file of a snapshot of KAI."""
    return HERE / "kai.json"
