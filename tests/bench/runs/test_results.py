"""The file of results: appended, read back, and robust to a kill."""

import json

import pytest

from ronda.bench.runs.results import Result, Status, results_of
from ronda.instances.errors import InputError
from ronda.instances.files.seal import seal, unseal


def result(key="k", **changes):
    """Return a result."""
    fields = {"key": key, "instance": "x", "policy": "fifo", "seed": 0, "status": Status.OK}
    return Result(**(fields | {"metrics": {"mean_jct_s": 2.5, "jobs": 3}} | changes))


def test_line_is_flat_and_complete(tmp_path):
    """Metrics stand beside the other fields, and every field is there even at its default."""
    file = results_of(tmp_path)
    file.append(result())
    line = json.loads((tmp_path / "results.jsonl").read_text())
    assert line["mean_jct_s"] == 2.5
    assert line["status"] == "OK"
    assert {"versions", "host", "commit", "config", "seed", "wall_s"} <= line.keys()
    assert "metrics" not in line


def test_latest_line_of_a_case_counts(tmp_path):
    """A run that is repeated leaves its old line, but the new one is read."""
    file = results_of(tmp_path)
    file.append(result(status=Status.TIME, metrics={}))
    file.append(result())
    file.append(result("other"))
    again = results_of(tmp_path)
    assert len(again.all()) == 2
    assert again.get("k") == result()
    assert again.get("nothing") is None
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 3


def test_a_figure_that_is_not_known_is_not_there():
    """Such as the energy of jobs without watts; what is 0 is."""
    line = result().to_line() | {"key": "0" * 10, "energy_j": None, "restarts": 0}
    found = Result.from_line(json.dumps(line).encode()).metrics
    assert ("energy_j" in found, found["restarts"]) == (False, 0)


def test_a_line_cut_in_half_is_dropped(tmp_path):
    """After a kill in the middle of a line the whole ones count, and the next starts afresh."""
    path = tmp_path / "results.jsonl"
    file = results_of(tmp_path)
    file.append(result())
    file.append(result("cut"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    again = results_of(tmp_path)
    assert len(again.all()) == 1
    again.append(result("cut"))
    assert path.read_bytes() == whole


def test_zeros_after_the_last_line_are_dropped(tmp_path):
    """A power cut leaves them where a file was longer than what reached the disk."""
    path = tmp_path / "results.jsonl"
    results_of(tmp_path).append(result())
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 100 + b"\n")
    again = results_of(tmp_path)
    again.append(result("next"))
    assert path.read_bytes().startswith(whole + b"{")
    assert len(results_of(tmp_path).all()) == 2


DAMAGE = {
    "no result": lambda line: b'{"key": "k"}',
    "no object": lambda line: b"[]",
    "metric changed": lambda line: line.replace(b"2.5", b"1.5"),
    "metric missing": lambda line: line.replace(b'"mean_jct_s":2.5,', b""),
    "metric null": lambda line: line.replace(b"2.5", b"null"),
    "cut within": lambda line: line[:50] + line[60:],
    "key with a path": lambda line: seal(
        unseal(line).replace(b'"key":"k"', b'"key":"../../k"'),
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_line_is_told(name, tmp_path):
    """A whole line that is not as it was written is not passed over in silence."""
    path = tmp_path / "results.jsonl"
    results_of(tmp_path).append(result())
    path.write_bytes(DAMAGE[name](path.read_bytes()[:-1]) + b"\n")
    with pytest.raises(InputError, match="line 1"):
        results_of(tmp_path)


@pytest.mark.parametrize(
    ("status", "timeout_s", "memory_mib", "final"),
    [
        (Status.OK, 1.0, 1.0, True),
        (Status.ERROR, 60.0, 512.0, False),
        (Status.TIME, 60.0, 512.0, True),
        (Status.TIME, 30.0, 9999.0, True),
        (Status.TIME, 61.0, 512.0, False),
        (Status.TIME, None, 512.0, False),
        (Status.OOM, 60.0, 512.0, True),
        (Status.OOM, 60.0, 513.0, False),
    ],
)
def test_what_is_run_again(status, timeout_s, memory_mib, final):
    """Errors are tried again, and broken limits once they are more generous."""
    old = result(status=status, timeout_s=60.0, memory_mib=512.0)
    assert old.final(timeout_s, memory_mib) is final
