"""What commands that make many runs say at the end."""

from ronda.bench.runs.results import Result, Status
from ronda.cli.runs import How
from ronda.instances.tables.table import Report


def result(name, status=Status.OK, message="", **metrics):
    """Return how a run of `name` ended."""
    about = {"key": name, "instance": name, "policy": "fifo", "label": "fifo", "seed": 0}
    return Result(status=status, message=message, metrics=metrics, **about)


def test_failures_are_told_to_people_and_counted_for_programs(capsys, tmp_path):
    """A run that ends early, and one that breaks rules; the command fails with either."""
    how = How(tmp_path, jobs=1, memory=1.0, timeout=1.0)
    runs = [result("a", jct=1.0), result("b", Status.TIME, "too long"), result("c", violations=2)]
    assert how.tell(runs, Report({"rows": []}, ["the table"]), as_json=False) == 1
    said = capsys.readouterr()
    assert said.out == f"the table\nresults, table and figures: {tmp_path}\n"
    first, second = said.err.splitlines()
    assert first == "TIME: b fifo seed 0: too long"
    assert second == "c fifo seed 0: it breaks 2 rules"
    assert how.tell(runs[:1], Report({"rows": []}, []), as_json=True) == 0
    assert '"runs":1,"statuses":{"OK":1},"rows":[]' in capsys.readouterr().out
