"""Names of instances and rounds are data: nothing that they say leaves the output folder."""

import msgspec

from ronda.bench.runs.compare import Layout
from ronda.instances.files.json import write


def test_a_name_that_is_a_path_writes_only_into_the_folder(folder, ronda, two_nodes, runs_here):
    """The figures of an instance that is called like a file elsewhere leave that file alone."""
    victim = folder / "victim" / "gantt.csv"
    victim.parent.mkdir()
    victim.write_text("mine")
    write(msgspec.structs.replace(two_nodes, name=str(victim.parent)), folder / "evil.json")
    done = ronda("compare", "evil.json", "--policies", "fifo", "--jobs", "1", "--out", "out")
    assert done.exit_code == 0, done.output
    assert victim.read_text() == "mine"
    assert [path.name for path in victim.parent.iterdir()] == ["gantt.csv"]
    assert (Layout(folder / "out").figures(str(victim.parent)) / "gantt.csv").exists()
