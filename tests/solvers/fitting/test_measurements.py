"""Tables of measurements: every name of a column, and one line for everything that is wrong."""

import gzip

import numpy as np
import pytest

from ronda.instances.errors import InputError
from ronda.solvers.fitting.fit import fit_table
from ronda.solvers.fitting.measurements import COLUMNS, Reading, read_measurements

STEPS = "gpus,nodes,local_batch,step_s\n1,1,8,0.5\n4,1,4,0.25\n8,2,2,0.125\n"
WATTS = "speed,power_w\n0.5,100\n0.7,120\n0.8,140\n0.9,170\n1.0,210\n"


@pytest.fixture
def csv(tmp_path):
    """Write a table and return its path."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def rows(path, **reading):
    """Return the rows of the only application of a table."""
    (table,) = read_measurements(path, Reading(**reading))
    return table.rows


# --- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["gpus", "nodes", "local_batch", "step_s"])
def test_every_alias_of_a_throughput_column(column, csv):
    """Published tables need no renaming."""
    plain = rows(csv(STEPS))
    for alias in COLUMNS["throughput"][column]:
        table = rows(csv(STEPS.replace(column, alias, 1)))
        assert getattr(table, column).tolist() == getattr(plain, column).tolist()


@pytest.mark.parametrize("column", ["speed", "power_w"])
def test_every_alias_of_a_power_column(column, csv):
    """Published tables need no renaming."""
    for alias in COLUMNS["power"][column]:
        table = rows(csv(WATTS.replace(column, alias, 1)))
        assert (table.speed[0], table.power_w[0]) == (0.5, 100)


def test_rates_and_global_batches_become_steps(csv):
    """2 iterations/s are 0.5 s; 32 samples on 4 GPUs are 8 each; 64 samples/s of 32 are 0.5 s."""
    rates = rows(csv("gpus,nodes,batch,iters_per_s\n4,1,32,2\n"))
    samples = rows(csv("gpus,nodes,batch,samples_per_s\n4,1,32,64\n"))
    for table in (rates, samples):
        assert (table.step_s.tolist(), table.local_batch.tolist()) == ([0.5], [8.0])


def test_nodes_and_passes_can_be_counted(csv):
    """12 GPUs of 8 a node are on 2; 96 a GPU, at most 32 at once, are 3 passes of 32."""
    table = rows(csv("gpus,batch,step_s\n12,1152,1\n1,32,1\n"), gpus_per_node=8, max_local_batch=32)
    assert table.nodes.tolist() == [2, 1]
    assert table.passes.tolist() == [3, 1]
    assert table.local_batch.tolist() == [32, 32]


def test_applications_and_gpus_are_kept_apart(csv):
    """One table for each; names are joined from dataset, model and optimizer; rows keep lines."""
    text = "dataset,network,gpu,gpus,nodes,local_batch,step_s\n"
    text += "d,m,A,1,1,8,1\nd,m,B,1,1,8,2\ne,m,A,1,1,8,3\nd,m,A,1,1,16,4\n"
    tables = read_measurements(csv(text), Reading())
    assert [(t.application, t.gpu_type, t.rows.row.tolist()) for t in tables] == [
        ("d-m", "A", [2, 5]), ("d-m", "B", [3]), ("e-m", "A", [4]),
    ]  # fmt: skip
    (only,) = read_measurements(csv(text), Reading(model="e"))
    assert only.rows.step_s.tolist() == [3]


def test_bad_rows_of_other_applications_do_not_matter(csv):
    """With --model the rest of the table is not looked at."""
    path = csv("model,gpus,nodes,local_batch,step_s\na,1,1,8,1\nb,1,1,8,0\n")
    assert rows(path, model="a").step_s.tolist() == [1]


def test_zero_can_mean_not_measured(csv):
    """Only on request, and counted."""
    path = csv("gpus,nodes,local_batch,iters_per_s\n1,1,8,4\n2,1,4,0\n4,1,2,0.0\n")
    (table,) = read_measurements(path, Reading(skip_zero=True))
    assert (table.rows.step_s.tolist(), table.rows.row.tolist()) == ([0.25], [2])
    assert table.skipped == 2
    with pytest.raises(
        InputError, match="row 3, iters_per_s: found '0'; expected a number above 0"
    ):
        rows(path)


def test_speed_is_time_without_a_cap_over_time(csv):
    """At 250 W batch 1 takes 10 s: 12.5 s are speed 0.8, and 9 s under a cap are 1.11; batch 2
    has a reference of its own; without caps the fastest is it.
    """
    text = "batch,cap_w,time_s,power_w\n1,100,12.5,90\n1,250,10,200\n1,200,9,190\n2,250,40,150\n"
    assert rows(csv(text)).speed.tolist() == pytest.approx([0.8, 1.0, 10 / 9, 1.0])
    bare = rows(csv("time_s,power_w\n12.5,90\n10,200\n9,190\n"))
    assert bare.speed.tolist() == pytest.approx([9 / 12.5, 0.9, 1.0])


def test_the_kind_is_told_by_the_columns(csv):
    """A column of watts means power."""
    assert [read_measurements(csv(text))[0].kind for text in (STEPS, WATTS)] == [
        "throughput",
        "power",
    ]


def test_compressed_tables_and_comments(tmp_path):
    """As everywhere in ronda."""
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(f"# from a lab\n{STEPS}".encode()))
    assert rows(path).row.tolist() == [3, 4, 5]


# --- what is refused -----------------------------------------------------------------------------

BAD_STEPS = {
    "empty": ("gpus,nodes,local_batch,step_s\n", "no rows"),
    "no header": ("", "table.csv"),
    "no gpus": ("nodes,local_batch,step_s\n1,8,1\n", "header"),
    "no batch": ("gpus,nodes,step_s\n1,1,1\n", "'local_batch' or 'local_bsz' or 'global_batch'"),
    "no time": ("gpus,nodes,local_batch\n1,1,8\n", "'step_s' or 'step_time' or 'iters_per_s'"),
    "no nodes": ("gpus,local_batch,step_s\n4,8,1\n", "--gpus-per-node"),
    "negative time": (STEPS.replace("0.25", "-0.25"), "row 3, step_s: found '-0.25'"),
    "zero time": (STEPS.replace("0.25", "0"), "row 3, step_s: found '0'"),
    "nan": (STEPS.replace("0.25", "nan"), "row 3, step_s: found 'nan'"),
    "infinite": (STEPS.replace("0.25", "inf"), "row 3, step_s: found 'inf'"),
    "blank": (STEPS.replace("0.25", ""), "row 3, step_s: found ''"),
    "denormal": (STEPS.replace("0.25", "1e-320"), "row 3, step_s: found '1e-320'"),
    "huge": (STEPS.replace("0.25", "1e300"), "row 3, step_s: found '1e300'"),
    "huge GPUs": (STEPS.replace("\n4,", "\n1e18,"), "row 3, gpus: found '1e18'"),
    "a cell more": (STEPS.replace("0.25", "0.25,7"), "row 3: found 5 cells; expected 4"),
    "text": (STEPS.replace("0.25", "fast"), "row 3, step_s: found 'fast'"),
    "half a GPU": (STEPS.replace("\n4,", "\n4.5,"), "row 3, gpus: found '4.5'"),
    "no GPU": (STEPS.replace("\n4,", "\n0,"), "row 3, gpus: found '0'"),
    "more nodes than GPUs": (STEPS.replace("4,1,4", "4,5,4"), "row 3, nodes: found '5'"),
    "negative batch": (STEPS.replace("1,4,0.25", "1,-4,0.25"), "row 3, local_batch: found '-4'"),
    "clock in MHz": (
        "gpus,nodes,local_batch,step_s,clock\n1,1,8,1,1\n1,1,8,1,1380\n",
        "row 3, clock: found '1380'",
    ),
    "all synchronising": (
        "gpus,nodes,local_batch,step_s,sync_time\n2,1,8,1,0.5\n2,1,4,1,1\n",
        "row 3, sync_time: found '1'",
    ),
}


@pytest.mark.parametrize("name", BAD_STEPS)
def test_bad_steps(name, csv):
    """File and row, what stands there, what should: one line, and the header's own word."""
    text, words = BAD_STEPS[name]
    path = csv(text)
    with pytest.raises(InputError) as error:
        read_measurements(path, Reading())
    assert words in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


BAD_WATTS = {
    "empty": ("speed,power_w\n", "no rows"),
    "no watts": ("speed\n1\n", "'power_w'"),
    "no speed": ("power_w\n100\n", "'speed' or 'relative_speed' or 'time_s'"),
    "negative watts": (WATTS.replace("120", "-120"), "row 3, power_w: found '-120'"),
    "zero watts": (WATTS.replace("120", "0"), "row 3, power_w: found '0'"),
    "zero speed": (WATTS.replace("0.7,", "0,"), "row 3, speed: found '0'"),
    "speed in MHz": (WATTS.replace("0.7,", "1380,"), "row 3, speed: found '1380'"),
    "nan": (WATTS.replace("120", "NaN"), "row 3, power_w: found 'NaN'"),
    "negative time": (WATTS.replace("speed", "epoch_s").replace("0.7,", "-7,"), "row 3, epoch_s"),
}


@pytest.mark.parametrize("name", BAD_WATTS)
def test_bad_watts(name, csv):
    """As for steps."""
    text, words = BAD_WATTS[name]
    with pytest.raises(InputError) as error:
        read_measurements(csv(text), kind="power")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("column", ["model", "dataset", "optimizer", "gpu"])
def test_blank_names(column, csv):
    """A row must say what it measured."""
    path = csv(f"{column},speed,power_w\na,0.5,100\n,1,200\n")
    with pytest.raises(InputError, match=f"row 3, {column}: found ''; expected a name"):
        read_measurements(path, Reading())


@pytest.mark.parametrize(("word", "found"), [("x", "a1, a2, b"), ("a", "2 that have it: a1, a2")])
def test_a_model_that_is_none_or_several(word, found, csv):
    """The names that there are stand in the error."""
    text = "model,gpus,nodes,local_batch,step_s\na1,1,1,8,1\na2,1,1,8,1\nb,1,1,8,1\n"
    with pytest.raises(InputError) as error:
        read_measurements(csv(text), Reading(model=word))
    assert found in error.value.found


def test_nothing_but_zeros(csv):
    """Leaving out all rows is no measurement."""
    path = csv("gpus,nodes,local_batch,iters_per_s\n1,1,8,0\n")
    with pytest.raises(InputError, match="no row with a time or rate above 0"):
        rows(path, skip_zero=True)


def test_skipped_rows_are_told_by_the_fit(csv):
    """The warning counts them."""
    rows = [f"{n},1,{b / n:g},{1 / (0.1 + 0.01 * b / n):g}" for n in (1, 2, 4, 8) for b in (8, 16)]
    path = csv("gpus,nodes,local_batch,iters_per_s\n" + "\n".join([*rows, "16,2,1,0"]))
    fits = fit_table(path, Reading(skip_zero=True))
    remark = next(r for r in fits.fits[0].remarks if r.code == "skipped-rows")
    assert remark.message.endswith("left out: 1")
    assert np.isfinite(fits.fits[0].errors.mape)


def test_progress_reaches_the_end(csv):
    """A bar that is told ever larger shares, with the name of what is fitted, up to 1."""
    text = "model,speed,power_w\n" + "".join(
        f"{name},{speed},{60 + 90 * speed**2}\n"
        for name in "ab"
        for speed in (0.4, 0.6, 0.8, 0.9, 1.0)
    )
    told = []
    fit_table(csv(text), progress=lambda name, share: told.append((share, name)))
    assert told == sorted(told)
    assert told[-1] == (1.0, "b")
