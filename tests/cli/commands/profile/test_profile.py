"""``profile``: fit, list, show."""

import csv
import json

import pytest

from ronda.instances.files.fits import fitted, read_fits

# T = (1 + 0.25 b) ms on 1 GPU, sync 2 + 0.5 (n - 2) ms in a node, 5 + 0.1 (n - 2) ms across.
SYNC = {1: 0.0, 2: 2.0, 4: 3.0, 8: 5.0, 16: 6.4, 32: 8.0}


def steps(model="app", sizes=SYNC, batches=(64, 128, 256)):
    """Return lines of a table without overlap (gamma 1), 8 GPUs a node."""
    return "".join(
        f"{model},{n},{batch},{(1 + 0.25 * batch / n + SYNC[n]) / 1e3:.9g}\n"
        for n in sizes
        for batch in batches
    )


STEPS = "model,gpus,global_batch,step_s\n" + steps()
WATTS = "cap_w,time_s,power_w\n" + "".join(
    f"{cap},{10 / speed:.9g},{30 + 120 * min(speed, 0.8) + 200 * max(speed**3 - 0.512, 0):.9g}\n"
    for cap, speed in zip(range(100, 800, 100), (0.4, 0.5, 0.6, 0.75, 0.85, 0.95, 1), strict=True)
)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A working directory with a table of steps and one of watts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "steps.csv").write_text(STEPS)
    (tmp_path / "watts.csv").write_text(WATTS)
    return tmp_path


def test_fit_throughput(tables, ronda):
    """Parameters on disk, errors for people, warnings on stderr."""
    done = ronda("profile", "fit", "steps.csv", "--gpus-per-node", 8, "--out", "p.json")
    assert done.exit_code == 0, done.output
    (fit,) = read_fits("p.json").fits
    assert fit.name == "app-GPU"
    assert fit.throughput.alpha_n_s == pytest.approx(5e-3, rel=0.05)
    assert fit.throughput.beta_c_s == pytest.approx(0.25e-3, rel=0.01)
    assert "app-GPU" in done.stdout
    assert "warning: app-GPU: phi-fixed: the clock never varies" in done.stderr
    assert done.stdout.splitlines()[-1] == "p.json: 1 fit"


def test_fit_power(tables, ronda):
    """The kind is told by the columns; speed comes from times and caps."""
    done = ronda(
        "profile", "fit", "watts.csv", "--gpu-type", "H", "--model", "m", "--out", "p.json"
    )
    assert done.exit_code == 0, done.output
    (fit,) = read_fits("p.json").fits
    assert (fit.name, fit.kind, fit.gpu_type) == ("m-H", "power", "H")
    assert fit.power.s0 == pytest.approx(0.8, abs=0.01)
    assert fit.power.c_w == pytest.approx(200.0, rel=0.02)
    assert ronda("profile", "fit", "watts.csv", "--kind", "throughput", "--out", "q.json").exit_code


def test_fit_for_programs(tables, ronda):
    """One object on the last line, with all residuals, and the same fit as on disk."""
    done = ronda("profile", "fit", "watts.csv", "--out", "p.json", "--json")
    fields = json.loads(done.stdout.splitlines()[-1])
    assert fields["out"] == "p.json"
    (fit,) = fields["fits"]
    (kept,) = read_fits("p.json").fits
    assert fit["errors"]["mape"] == pytest.approx(kept.errors.mape)
    assert len(fit["residuals"]) == 7
    assert fit["residuals"][0]["at"] == {"speed": 0.4}


def test_options_reach_the_fit(tables, ronda):
    """--model, --fix, --seed and --own-shapes do what they say."""
    (tables / "two.csv").write_text(STEPS + steps("other"))
    words = ["profile", "fit", "two.csv", "--gpus-per-node", 8, "--out", "p.json", "--model", "oth"]
    done = ronda(*words, "--fix", "phi=0.5", "--fix", "gamma=1")
    assert done.exit_code == 0, done.output
    (fit,) = read_fits("p.json").fits
    assert (fit.application, fit.throughput.phi, fit.throughput.gamma) == ("other", 0.5, 1.0)
    batches = "batch,speed,power_w\n" + "".join(
        f"{b},{s},{40 + 100 * min(s, knee) + 250 * max(s**3 - knee**3, 0)}\n"
        for b, knee in ((8, 0.75), (16, 0.9))
        for s in (0.3, 0.5, 0.7, 0.8, 0.85, 0.95, 1.0)
    )
    (tables / "b.csv").write_text(batches)
    knees = {}
    for flag in ((), ("--own-shapes",)):
        ronda("profile", "fit", "b.csv", "--out", "b.json", "--force", *flag)
        knees[flag] = [fit.power.s0 for fit in read_fits("b.json").fits]
    assert knees[()][0] == knees[()][1]
    assert knees[("--own-shapes",)] == pytest.approx([0.75, 0.9], abs=0.01)


def test_figure_and_its_numbers(tables, ronda):
    """A picture of the residuals, and every one of them as CSV beside it."""
    for table, rows in (("steps.csv", 18), ("watts.csv", 7)):
        words = ["profile", "fit", table, "--gpus-per-node", 8, "--out", "p.json", "--force"]
        done = ronda(*words, "--figure", "residuals.png")
        assert done.exit_code == 0, done.output
        assert (tables / "residuals.png").read_bytes().startswith(b"\x89PNG")
        with (tables / "residuals.csv").open() as file:
            lines = list(csv.DictReader(file))
        assert len(lines) == rows
        fit = read_fits("p.json").fits[0]
        assert float(lines[0]["fitted"]) == pytest.approx(fit.residuals[0].fitted)


BAD = [
    ("missing.csv", "missing.csv"),
    ("empty.csv", "no rows"),
    ("column.csv", "'step_s'"),
    ("zero.csv", "row 3, step_s: found '0'"),
    ("negative.csv", "row 3, step_s: found '-1'"),
    ("nan.csv", "row 3, step_s: found 'nan'"),
    ("dark.csv", "row 3, power_w: found '0'"),
    ("falling.csv", "power that falls from 200 to 100 W"),
    ("one-batch.csv", "one local batch"),
    ("few.csv", "rows for"),
    ("steps.csv --gpus-per-node x", "--gpus-per-node"),
    ("steps.csv --gpus-per-node 0", "--gpus-per-node"),
    ("steps.csv", "--gpus-per-node"),
    ("watts.csv --kind heat", "--kind"),
    ("watts.csv --fix s0", "NAME=VALUE"),
    ("watts.csv --fix s0=high", "NAME=VALUE"),
    ("watts.csv --fix s0=nan", "NAME=VALUE"),
    ("watts.csv --fix s0=2", "0.01 to 1"),
    ("watts.csv --fix heat=2", "a_w, s0"),
    ("steps.csv --gpus-per-node 8 --model else", "app"),
    ("steps.csv --max-local-batch nan", "--max-local-batch"),
    ("steps.csv --max-local-batch -1", "--max-local-batch"),
    ("watts.csv --figure residuals.pdf", ".png"),
    ("watts.csv --figure old.png", "--force"),
    ("watts.csv --seed -1", "--seed"),
]


@pytest.fixture
def bad(tables):
    """Tables that cannot be fitted."""
    texts = {
        "empty": "gpus,nodes,local_batch,step_s\n",
        "column": "gpus,nodes,local_batch\n1,1,8\n",
        "zero": "gpus,nodes,local_batch,step_s\n1,1,8,1\n1,1,8,0\n",
        "negative": "gpus,nodes,local_batch,step_s\n1,1,8,1\n1,1,8,-1\n",
        "nan": "gpus,nodes,local_batch,step_s\n1,1,8,1\n1,1,8,nan\n",
        "dark": "speed,power_w\n0.5,100\n1,0\n",
        "falling": "speed,power_w\n0.5,200\n0.6,180\n0.8,150\n0.9,120\n1,100\n",
        "one-batch": "gpus,nodes,local_batch,step_s\n1,1,8,1\n2,1,8,1\n4,1,8,1\n",
        "few": "gpus,nodes,local_batch,step_s\n1,1,8,1\n1,1,4,0.6\n",
    }
    for name, text in texts.items():
        (tables / f"{name}.csv").write_text(text)
    (tables / "old.png").write_bytes(b"precious")
    return tables


@pytest.mark.parametrize(("words", "said"), BAD, ids=[words for words, _ in BAD])
def test_bad_input(words, said, bad, ronda):
    """One line on stderr that says where, exit code 2, nothing written."""
    before = {path.name: path.read_bytes() for path in bad.iterdir()}
    done = ronda("profile", "fit", *words.split(), "--out", "new.json")
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_bytes() for path in bad.iterdir()} == before


@pytest.mark.parametrize(
    ("out", "said"), [("steps.csv", "--force"), ("p.txt", ".json"), (".", "folder")]
)
def test_bad_targets(out, said, tables, ronda):
    """Told before any work; --force is what replaces a file."""
    done = ronda("profile", "fit", "watts.csv", "--out", out)
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert (tables / "steps.csv").read_text() == STEPS


def test_list(ronda):
    """All packaged fits for programs; families for people, single ones for a word."""
    fields = json.loads(ronda("profile", "list", "--json").stdout)
    assert [fit["name"] for fit in fields["fits"]] == [fit.name for fit in fitted()]
    text = ronda("profile", "list").stdout
    assert "zeus-resnet50-V100 " in text
    assert "zeus-resnet50-V100-b256" not in text
    assert "zeus-resnet50-V100-b256" in ronda("profile", "list", "resnet50-V100").stdout
    wrong = ronda("profile", "list", "resnet51")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)


def test_show(tables, ronda):
    """A packaged fit and a file: parameters, errors, warnings, where it comes from."""
    text = ronda("profile", "show", "elasticflow-bert-A100").stdout
    for words in ("beta_c_s", "phi-fixed", "ElasticFlow", "Apache-2.0", "14 rows"):
        assert words in text
    ronda("profile", "fit", "watts.csv", "--out", "p.json")
    assert "s0" in ronda("profile", "show", "p.json").stdout
    (fit,) = json.loads(ronda("profile", "show", "p.json", "--json").stdout)["fits"]
    assert fit["kind"] == "power"
    wrong = ronda("profile", "show", "elasticflow-bret-A100")
    assert (wrong.exit_code, "elasticflow-bert-A100" in wrong.stderr) == (2, True)


def test_completion_offers_packaged_names(ronda, monkeypatch):
    """As for instances."""
    monkeypatch.setenv("_RONDA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ronda profile show elasticflow-bert")
    monkeypatch.setenv("COMP_CWORD", "3")
    offered = {line.partition(",")[2] for line in ronda().stdout.splitlines()}
    assert {"elasticflow-bert-A100", "elasticflow-bert-T4"} <= offered
