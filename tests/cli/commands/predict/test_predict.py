"""``predict``: train, errors; and runs that are told sizes by what was trained."""

import json

import pytest


@pytest.fixture
def trained(tmp_path, ronda):
    """A predictor trained by the command."""
    path = tmp_path / "sizes.json.zst"
    figure = path.with_name("sizes.png")
    done = ronda("predict", "train", "venus-vcvly", "--out", path, "--figure", figure, "--json")
    return path, json.loads(done.stdout.splitlines()[-1])


def test_train_tells_how_right_it_is(trained):
    """Numbers, a file and a picture with its numbers."""
    path, fields = trained
    assert {"out", "checksum", "jobs", "correlation", "coverage"} <= fields.keys()
    assert -1 <= fields["service_correlation"] <= 1
    assert path.with_name("sizes.png").stat().st_size > 1000
    assert path.with_name("sizes.csv").read_text().startswith("believed,share")


def test_a_run_is_told_sizes(trained, ronda):
    """Its knowledge is history; without that level the predictor is refused."""
    path, _ = trained
    words = ("run", "venus-vcvly", "--policy", "qssf", "--predictor", path)
    done = ronda(*words, "--knowledge", "history", "--json")
    fields = json.loads(done.stdout.splitlines()[-1])
    assert (fields["knowledge"], fields["violations"]) == ("history", 0)
    assert fields["size_error"] > 0
    refused = ronda(*words)
    assert refused.exit_code == 2
    assert "history" in refused.stderr


def test_errors_writes_an_instance_with_wrong_sizes(tmp_path, ronda):
    """Of the same jobs, whose knowledge is no longer that of an oracle."""
    out = tmp_path / "wrong.json.zst"
    assert ronda("predict", "errors", "venus-vcvly", "--out", out).exit_code == 0
    fields = json.loads(ronda("run", out, "--policy", "qssf", "--json").stdout.splitlines()[-1])
    assert fields["knowledge"] == "declared"
