"""Suites by the command line: what runs, and what options replace."""

import json

import pytest

SUITE = """
about = "Costs of restarts."
instances = ["two-nodes.json", { make = "sweep", trials = 2, gpus = 2 }]
policies = ["fifo", "srtf"]
seeds = "0-1"
figure = ["mean_jct_s", "jobs"]

[change]
restart_s = [0, 30]

[ratio]
to = { policy = "fifo" }

[table]
rows = ["instance", "policy"]
across = "restart_s"
cells = ["mean_jct_s", "mean_jct_s/base"]
columns = ["violations"]
"""


@pytest.fixture
def suite(folder):
    """Write a suite."""
    path = folder / "costs.toml"
    path.write_text(SUITE)
    return path


def test_a_suite_end_to_end(suite, folder, ronda, runs_here):
    """(1 + 2 seeds of what is drawn) x 2 costs x 2 policies; its folder is called after it.

    FIFO runs a and c from 0 and 10 s, b at 100: 400/3 s, whatever a restart costs.
    """
    done = ronda("compare", suite.name, "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["runs"], summary["out"]) == ((1 + 2) * 2 * 2, "costs-out")
    assert [(row["instance"], row["policy"]) for row in summary["rows"]] == [
        ("two-nodes", "fifo"),
        ("two-nodes", "srtf"),
        ("sweep", "fifo"),
        ("sweep", "srtf"),
    ]
    assert summary["rows"][0]["mean_jct_s"] == pytest.approx(400 / 3)
    out = folder / "costs-out"
    table = (out / "table.md").read_text()
    assert table.startswith("### Costs of restarts.")
    assert "| two-nodes | fifo | 133 (1.000) | 133 (1.000) | 0 |" in table
    assert (out / "figures" / "points.png").stat().st_size > 5_000
    assert len(list((out / "instances").iterdir())) == 3
    assert len((out / "results.jsonl").read_text().splitlines()) == 12


def test_options_replace_what_a_suite_says(suite, folder, ronda, runs_here):
    """What it is held against runs as well, and what has run is not run again."""
    words = ("compare", suite.name, "--policies", "sjf", "--seeds", "5", "--out", "here")
    done = ronda(*words, "--no-figures", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    assert {row["policy"] for row in summary["rows"]} == {"fifo", "sjf"}
    lines = [json.loads(line) for line in (folder / "here" / "results.jsonl").open()]
    assert {line["seed"] for line in lines} == {5}
    assert {line["time_limit_s"] for line in lines} == {None}
    assert not (folder / "here" / "figures").exists()
    again = ronda(*words, "--no-figures")
    assert "8 of 8 runs are in here already" in again.stderr


def test_options_are_a_suite(folder, ronda, runs_here):
    """The same runs by options and by a file have the same results."""
    (folder / "s.toml").write_text(
        'instances = ["two-nodes.json"]\npolicies = ["fifo", "genetic"]\nknowledge = ["oracle"]\n'
        'seeds = "0-1"\ntime_limit_s = 10\n'
    )
    words = ("two-nodes.json", "--policies", "fifo,genetic", "--knowledge", "oracle")
    assert ronda("compare", *words, "--seeds", "0-1", "--no-figures").exit_code == 0
    done = ronda("compare", "s.toml", "--out", "compare-out", "--no-figures", "--json")
    assert "3 of 3 runs are in compare-out already" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["instances"][0]["jobs"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["costs.toml", "two-nodes.json"], "found 2 arguments; expected one suite"),
        (["no.toml"], "no.toml: found no such file"),
        (["costs.toml", "--policies", "joy"], "'joy'"),
        (
            ["bad.toml"],
            'bad.toml: found unknown field "polices"; expected "policies"? of instances',
        ),
        (["costs.toml", "--seeds", "x"], "seeds: found 'x'"),
    ],
)
def test_bad_suites_write_nothing(suite, folder, ronda, words, said):
    """One line, exit code 2."""
    (folder / "bad.toml").write_text("polices = []")
    before = sorted(folder.iterdir())
    done = ronda("compare", *words)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert sorted(folder.iterdir()) == before


def test_workloads_are_drawn_for_all_policies_alike(suite, folder, ronda, runs_here):
    """Policies without randomness, too: N workloads, each the same for both."""
    words = ("compare", "two-nodes.json", "--policies", "fifo,srtf", "--no-figures")
    done = ronda(*words, "--resample", "3", "--json", "--out", "drawn")
    assert done.exit_code == 0, done.output
    (about,) = json.loads(done.stdout.splitlines()[-1])["instances"]
    assert [(row["policy"], row["runs"]) for row in about["policies"]] == [("fifo", 3), ("srtf", 3)]
    runs = [json.loads(line) for line in (folder / "drawn/results.jsonl").read_text().splitlines()]
    of = {
        name: {run["seed"]: run["fingerprint"] for run in runs if run["policy"] == name}
        for name in ("fifo", "srtf")
    }
    assert of["fifo"] == of["srtf"]
    assert len({*of["fifo"].values()}) == 3
    assert "| fifo (3 workloads) |" in (folder / "drawn/table.md").read_text()


def test_workloads_are_drawn_in_a_suite_by_option_as_well(suite, folder, ronda, runs_here):
    """The seeds of the suite give way to those of the workloads."""
    done = ronda("compare", suite.name, "--resample", "2", "--policies", "fifo", "--json")
    assert "found 1 submissions" in done.output  # its search is one
    suite.write_text(SUITE.replace(', { make = "sweep", trials = 2, gpus = 2 }', ""))
    done = ronda("compare", suite.name, "--resample", "2", "--policies", "fifo", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["runs"] == 2 * 2


def test_workloads_and_seeds_are_one_choice(folder, ronda):
    """They are the same numbers."""
    done = ronda("compare", "two-nodes.json", "--resample", "3", "--seeds", "0-4")
    assert done.exit_code == 2
    assert "--resample: found --seeds as well" in done.output


def test_the_table_goes_into_pages(folder, ronda):
    """Between the marks with the suite's name, and again with the same text; or nothing runs."""
    (folder / "tiny.toml").write_text(
        'instances = ["two-nodes.json"]\npolicies = ["fifo", "srtf"]\n[table]\n'
        'columns = ["mean_jct_s"]'
    )
    for name in ("a.md", "b.md"):
        (folder / name).write_text("A\n<!-- tiny -->\nold\n<!-- end of tiny -->\nB\n")
    words = ("compare", "tiny.toml", "--no-figures", "--into", "a.md", "--into", "b.md")
    assert ronda(*words).exit_code == 0
    page = (folder / "a.md").read_text()
    assert page == (folder / "b.md").read_text()
    assert page.startswith("A\n<!-- tiny -->\n")
    assert page.endswith("<!-- end of tiny -->\nB\n")
    assert "old" not in page
    assert "| srtf |" in page
    assert "2 runs of ronda " in page
    assert ronda(*words).exit_code == 0
    assert (folder / "a.md").read_text() == page
    (folder / "c.md").write_text("no marks")
    done = ronda("compare", "tiny.toml", "--into", "c.md", "--out", "other")
    assert done.exit_code == 2
    assert "c.md: found 0 places for tiny" in done.stderr
    assert not (folder / "other").exists()
