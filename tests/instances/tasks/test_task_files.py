"""Files of rounds of tasks and plans: they come back as they were, and hostile ones are refused."""

import io
import os
import re
import zipfile
from contextlib import suppress
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow.parquet import read_table, write_table

from ronda.instances.errors import InputError
from ronda.instances.generate.tasks import TaskMix, openb_like
from ronda.instances.plan import SolveRecord, StopReason
from ronda.instances.tasks.arrays import TaskPlan
from ronda.instances.tasks.check import check_tasks
from ronda.instances.tasks.files import (
    SUFFIXES,
    holds_arrays,
    read_task_plan,
    read_tasks,
    write_task_plan,
    write_tasks,
)
from ronda.instances.tasks.validate import unplaceable


def same(a, b):
    """Return whether two rounds or plans are equal in every part."""
    parts = ((getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return all(
        np.array_equal(x, y) and x.dtype == y.dtype if isinstance(x, np.ndarray) else x == y
        for x, y in parts
    )


def a_plan(**more):
    """Return a plan of two tasks."""
    usual = {
        "task": np.array([0, 2, 2]),
        "node": np.array([1, 0, 70_000]),
        "objective": 3.5,
        "bound": 4.0,
        "node_price": np.array([[0.0, 1.5]]),
        "stop": StopReason.GAP,
        "record": SolveRecord(seed=3, total_s=1.5, message="a\nb"),
    }
    return TaskPlan(**(usual | more))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("mix", [TaskMix(), TaskMix(running=0.5, gangs=0.05, elastic=0.3)])
def test_rounds_come_back_as_they_were(tmp_path, suffix, mix):
    """All arrays and their types; a second writing gives the same bytes."""
    path = tmp_path / f"r{suffix}"
    made = replace(openb_like(30, 300, 2, mix), most_disrupted=7, name="a \u00fc name")
    write_tasks(made, path)
    back = read_tasks(path)
    assert same(back, made)
    first = path.read_bytes()
    write_tasks(back, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_plans_come_back_as_they_were(tmp_path, suffix):
    """Also an empty one; a plan is no round."""
    path = tmp_path / f"p{suffix}"
    none = np.empty(0, dtype=np.int64)
    for made in (a_plan(), a_plan(task=none, node=none)):
        write_task_plan(made, path)
        assert same(read_task_plan(path), made)
    with pytest.raises(InputError, match=r'format: found "ronda/task-plan/1"; expected one of'):
        read_tasks(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_not_valid_is_not_written(tmp_path, small, suffix):
    """An old file stays, and no draft is left."""
    path = tmp_path / f"r{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(InputError, match="shape"):
        write_tasks(small(shape=[9] * 6), path)
    with pytest.raises(InputError, match="bound"):
        write_task_plan(a_plan(bound=float("inf")), path)
    with pytest.raises(InputError, match="node: found the shape"):
        write_task_plan(a_plan(node=np.array([1])), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


def test_names_tell_files_of_arrays(tmp_path, small):
    """Any other name is refused before anything is written."""
    assert holds_arrays("a/b.npz")
    assert not holds_arrays("round.json.zst")
    with pytest.raises(InputError, match=r"the name \"r.json\"; expected a name that ends in .npz"):
        write_tasks(small(), tmp_path / "r.json")
    with pytest.raises(InputError, match="no such file"):
        read_tasks(tmp_path / "r.npz")


def npz(small, **more):
    """Return a file's arrays by name, with other ones where given; None leaves one out."""
    file = io.BytesIO()
    path = more.pop("path")
    write_tasks(small(), path)
    with np.load(path) as old:
        arrays = {**old, **more}
    np.savez(file, **{name: a for name, a in arrays.items() if a is not None})
    return file.getvalue()


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"use": None}, "no array use"),
        ({"uses": np.ones(3)}, 'an array "uses"; expected one of'),
        ({"head": None}, "head: found no field format"),
        ({"head": np.array("{")}, "head"),
        ({"head": np.array('{"format": "ronda/tasks/9"}')}, 'found "ronda/tasks/9"'),
        ({"head": np.array('{"format": "ronda/tasks/1", "kinds": ["a"]}')}, "head"),
        ({"head": np.ones(3)}, "head"),
        (
            {"value": np.array([{}] * 6, dtype=object)},
            "the type object; expected numbers",
        ),
        ({"value": np.ones(6, dtype=[("a", float)])}, "the type [('a', '<f8')]"),
        ({"value": np.ones(6, dtype=complex)}, "the type complex128"),
        ({"value": np.array(["a"] * 6)}, "value: found numbers of the type <U1"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, small, more, found):
    """One line that names the file and the array; pickles are never loaded."""
    path = tmp_path / "r.npz"
    path.write_bytes(npz(small, path=path, **more))
    with pytest.raises(InputError) as error:
        read_tasks(path)
    assert str(error.value).startswith(str(path))
    assert found in str(error.value)
    assert "\n" not in str(error.value)


def header(shape, descr="<f8"):
    """Return a ``.npy`` file that says it has a shape, and has eight bytes."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"shape": shape, "fortran_order": False, "descr": descr}
    )
    return file.getvalue() + bytes(8)


@pytest.mark.parametrize(
    ("member", "found"),
    [
        (header((10**15,)), "found 8 bytes; expected those of the shape (1000000000000000,)"),
        (header((0,)), "found 8 bytes; expected those of the shape (0,)"),
        (header((-1, -1)), "found 8 bytes"),
        (header((10**12,), "<U0"), "found the type <U0"),
        (header((1,), "|O"), "found the type object"),
        (b"\x93NUMPY\x07\x00", "damaged data"),
        (b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 70_000, "damaged data"),
        (b"", "damaged data"),
        (b"PK", "damaged data"),
    ],
)
def test_lying_headers_are_refused(tmp_path, member, found):
    """What a header says is compared with the bytes before any memory is taken."""
    path = tmp_path / "r.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("value.npy", member)
    with pytest.raises(InputError, match=re.escape(found)):
        read_tasks(path)


def test_bombs_are_refused(tmp_path, small, monkeypatch):
    """A file of zeros, a member twice, another compression, and a table of many equal rows."""
    path = tmp_path / "r.npz"
    np.savez_compressed(path, value=np.zeros(1 << 22))
    assert path.stat().st_size < 1 << 16
    monkeypatch.setenv("RONDA_LIMITS", "mib=8")
    with pytest.raises(InputError, match="32 MiB of arrays; expected at most 8 MiB"):
        read_tasks(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("value.npy", header((1,)))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("value.npy", header((1,)))
    with pytest.raises(InputError, match="an array twice"):
        read_tasks(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("value.npy", header((1,)))
    with pytest.raises(InputError, match="an unusual compression"):
        read_tasks(path)
    table = tmp_path / "r.parquet"
    write_table(pa.table({"value": pa.array(np.zeros(1 << 22))}), table)
    assert table.stat().st_size < 1 << 16
    with pytest.raises(InputError, match="32 MiB of arrays; expected at most 8 MiB"):
        read_tasks(table)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array(["a"] * 6), '"value": found the type string; expected numbers'),
        (pa.array([1.0, None, 1, 1, 1, 1]), '"value": found 1 empty cells'),
        (pa.array([[1.0]] * 6), '"value": found the type list<element: double>'),
        (pa.array([-1.0] * 6), "value[0]: found -1.0 (and 5 more)"),
    ],
)
def test_wrong_columns_are_named(tmp_path, small, column, found):
    """One line that names the file and the column."""
    path = tmp_path / "r.parquet"
    write_tasks(small(), path)
    table = read_table(path)
    at = table.schema.get_field_index("value")
    write_table(table.set_column(at, "value", column), path)
    with pytest.raises(InputError) as error:
        read_tasks(path)
    assert found in str(error.value)


def test_nodes_that_are_no_lists_are_named(tmp_path, small):
    """Of a task that runs a column has the list of its nodes; a node in it may not be empty."""
    path = tmp_path / "r.parquet"
    write_tasks(small(), path)
    table = read_table(path)
    at = table.schema.get_field_index("held_node")
    for column in (
        pa.array([0] * 6),
        pa.array([["a"]] * 6),
        pa.array([[None]] * 6, pa.list_(pa.int64())),
    ):
        write_table(table.set_column(at, "held_node", column), path)
        with pytest.raises(InputError, match=r"held_node"):
            read_tasks(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_round_without_tasks_comes_back(tmp_path, small, suffix):
    """No task waits and none runs."""
    none = np.empty(0, dtype=np.int64)
    parts = dict.fromkeys(("shape", "group", "job", "held_task", "held_node"), none)
    made = small(value=np.empty(0), move_cost=np.empty(0), **parts)
    write_tasks(made, tmp_path / f"r{suffix}")
    back = read_tasks(tmp_path / f"r{suffix}")
    assert same(back, made)
    assert unplaceable(back) == []
    prices = np.zeros((2, 2))
    assert check_tasks(back, a_plan(task=none, node=none, objective=0.0, node_price=prices)) == []


def test_wrong_metadata_are_named(tmp_path, small):
    """Rows of unequal length, no JSON, and brackets without end."""
    path = tmp_path / "r.parquet"
    write_tasks(small(), path)
    table = read_table(path)
    for text in ("[[1], [1, 2]]", "[", "[" * 100_000, "{}", '["a"]', "[1e999]"):
        write_table(table.replace_schema_metadata({**table.schema.metadata, b"use": text}), path)
        with pytest.raises(InputError, match=r"r\.parquet"):
            read_tasks(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), suffix=st.sampled_from(SUFFIXES))
def test_damaged_files_are_refused_in_one_line(tmp_path, small, data, suffix):
    """A file with a part of other bytes is read as it was or refused; nothing else happens."""
    path = tmp_path / f"r{suffix}"
    write_tasks(small(), path)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.binary(max_size=8))
    path.write_bytes(whole[:at] + other + whole[at + data.draw(st.integers(0, 8)) :])
    with suppress(InputError):
        same(read_tasks(path), small())
        return
    with pytest.raises(InputError, match=re.escape(str(path))) as error:
        read_tasks(path)
    assert "\n" not in str(error.value)
