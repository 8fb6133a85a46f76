"""``ronda.compare``: the runs of the command, as a table for notebooks."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.bench.runs.results import results_of
from ronda.instances.files.json import write


def test_rows_runs_and_tables(runs_here, two_nodes, tmp_path):
    """An instance in memory and one in a file; figures are those of a run."""
    other = replace(two_nodes, name="<other>")
    write(other, tmp_path / "other.json")
    found = ronda.compare([two_nodes, tmp_path / "other.json"], "fifo,srtf", seeds=range(2), jobs=1)
    assert [(row["instance"], row["policy"]) for row in found.rows] == [
        *(("two-nodes", "fifo"), ("two-nodes", "srtf")),
        *(("<other>", "fifo"), ("<other>", "srtf")),
    ]
    assert {(run["policy"], run["seed"], run["status"]) for run in found.runs} == {
        *(("fifo", 0, "OK"), ("srtf", 0, "OK")),
    }
    expected = ronda.summarise(two_nodes, ronda.run(two_nodes, "srtf"))["mean_jct_s"]
    assert found.rows[1]["mean_jct_s"] == found.runs[1]["mean_jct_s"] == expected
    html = found._repr_html_()
    assert "&lt;other&gt;" in html
    assert "<other>" not in html
    assert "<strong>" in html
    assert repr(found).startswith("### two-nodes")


def test_a_folder_keeps_it_and_nothing_runs_again(runs_here, two_nodes, tmp_path):
    """More policies run what is missing; the command goes on from the same folder."""
    out = tmp_path / "out"
    first = ronda.compare(two_nodes, ["fifo"], out=out, jobs=1)
    lines = (out / "results.jsonl").read_bytes()
    again = ronda.compare(two_nodes, ["fifo", "srtf"], out=out, jobs=1)
    assert (out / "results.jsonl").read_bytes().startswith(lines)
    assert len(results_of(out).all()) == 2
    assert again.runs[0] == first.runs[0]
    assert (out / "table.csv").exists()
    assert (out / "results.csv").exists()


def test_a_process_of_its_own(two_nodes):
    """As in a notebook: nothing is patched, nothing is kept."""
    (run,) = ronda.compare(two_nodes, "fifo", jobs=1).runs
    assert (run["status"], run["violations"]) == ("OK", 0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policies": "fofo"}, '"fifo"'),
        ({"policies": []}, "policies"),
        ({"seeds": [-1]}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"instances": "pollux-11"}, "pollux-1"),
        ({"instances": []}, "instances"),
        ({"knowledge": ["all"]}, "knowledge"),
        ({"out": "."}, "a folder with files that ronda did not make"),
    ],
)
def test_bad_arguments_are_named(given, said, two_nodes, tmp_path, monkeypatch):
    """Before anything runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(ronda.InputError, match=said):
        ronda.compare(**{"instances": two_nodes, "policies": "fifo"} | given)
