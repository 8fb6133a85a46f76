"""Files of rounds of tasks and their plans: arrays as ``.npz`` or ``.parquet``.

Both hold a JSON text ``head`` and arrays by name; ``docs/formats.md`` is the specification.
Nothing in a file is run, and its arrays are no larger than the bytes that it may have.
"""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.lib import format as npy

from ronda.instances.arguments import checked
from ronda.instances.base import Index, Record
from ronda.instances.errors import InputError, need
from ronda.instances.files import canonical, storage
from ronda.instances.files.json import parse
from ronda.instances.plan import SolveRecord, StopReason
from ronda.instances.rules.problem import limits, one_of, show
from ronda.instances.tasks.arrays import TaskPlan, TaskRound
from ronda.instances.tasks.validate import AXES, Arrays, sized, validate_tasks

SUFFIXES = (".npz", ".parquet")
"""The ends of names of such files."""


class TaskRoundHead(Record, frozen=True, kw_only=True):
    """The parts of a `TaskRound` that are no arrays."""

    format: Literal["ronda/tasks/1"] = "ronda/tasks/1"
    name: str = "tasks"
    resources: tuple[str, ...]
    kinds: tuple[str, ...]
    pools: tuple[str, ...]
    most_disrupted: Index | None = None


class TaskPlanHead(Record, frozen=True, kw_only=True):
    """The parts of a `TaskPlan` that are no arrays."""

    format: Literal["ronda/task-plan/1"] = "ronda/task-plan/1"
    objective: float
    bound: float
    stop: StopReason
    record: SolveRecord = SolveRecord()


_FORMATS: dict[type, dict[str, type[Record]]] = {
    TaskRound: {"ronda/tasks/1": TaskRoundHead},
    TaskPlan: {"ronda/task-plan/1": TaskPlanHead},
}
_DAMAGE = (
    *(ArithmeticError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


def holds_arrays(source: str | Path) -> bool:
    """Return whether a name is that of a file of arrays."""
    return str(source).endswith(SUFFIXES)


@checked
def read_tasks(path: str | Path) -> TaskRound:
    """Read a round from a ``.npz`` or ``.parquet`` file, or refuse it if it has any problem."""
    return decode_tasks(storage.read_bytes(Path(path)), storage.label(path))


def decode_tasks(data: bytes, place: str) -> TaskRound:
    """Read a round from the bytes of a file with the name `place`."""
    return validate_tasks(_decoded(data, place, TaskRound), place)


@checked
def read_task_plan(path: str | Path) -> TaskPlan:
    """Read a plan from a ``.npz`` or ``.parquet`` file."""
    place = storage.label(path)
    return sized(_decoded(storage.read_bytes(Path(path)), place, TaskPlan), place)


@checked
def write_tasks(round: TaskRound, path: str | Path) -> None:
    """Write a valid round as ``.npz`` or ``.parquet``, in one step or not at all."""
    _write(validate_tasks(round), path)


@checked
def write_task_plan(plan: TaskPlan, path: str | Path) -> None:
    """Write a plan as ``.npz`` or ``.parquet``, in one step or not at all."""
    _write(sized(plan, "plan"), path)


def _decoded(data: bytes, place: str, kind: type[Arrays]) -> Arrays:
    table = data.startswith(b"PAR1")
    if table:
        need(place, "pyarrow")
    try:
        values = _from_parquet(data, place) if table else _from_npz(data, place)
    except _DAMAGE as error:
        expected = f"a whole file of arrays, {' or '.join(SUFFIXES)}"
        raise InputError(place, f"damaged data ({show(str(error), 200)})", expected) from None
    text = str(values.pop("head", "{}")).encode("utf-8", "replace")
    head = parse(text, f"{place}, head", _FORMATS[kind])
    fields = {name: getattr(head, name) for name in head.__struct_fields__[1:]}
    known = [name for name in AXES if name in kind.__dataclass_fields__]
    for name in values.keys() - set(known):
        raise InputError(place, f"an array {show(name)}", one_of(known, name))
    for name in known:
        if name not in values and name not in ("job", "slot_price"):
            raise InputError(place, f"no array {name}", "that array")
    return kind(**fields, **values)


def _write(made: TaskRound | TaskPlan, path: str | Path) -> None:
    pack = _to_npz if is_npz(path) else _to_parquet
    (head,) = _FORMATS[type(made)].values()
    fields = {name: getattr(made, name) for name in head.__struct_fields__[1:]}
    plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in fields.items()}
    text = canonical.encode(head(**plain))
    parse(text, f"{storage.label(path)}, head", head)  # refuses NaN and infinity
    values = {n: a for n in AXES if (a := getattr(made, n, None)) is not None}
    storage.write_bytes(Path(path), pack(text.decode(), values))


def is_npz(path: str | Path) -> bool:
    """Return whether a file is to be ``.npz``, not ``.parquet``; refuse any other name."""
    if not holds_arrays(path):
        found = f"the name {show(Path(path).name)}"
        raise InputError(storage.label(path), found, f"a name that ends in {' or '.join(SUFFIXES)}")
    if str(path).endswith(".npz"):
        return True
    need(storage.label(path), "pyarrow")
    return False


def _to_npz(head: str, values: dict[str, Any]) -> bytes:
    """Return a zip file of arrays, with whole numbers in as few bytes as hold them."""
    file = io.BytesIO()
    small = {name: a.astype(_least(a), order="C") for name, a in values.items()}
    np.savez(file, head=np.array(head), **small)
    return file.getvalue()


def _least(array: np.ndarray[Any, Any]) -> Any:
    """Return the type of a file's numbers."""
    if array.dtype.kind == "f" or not array.size:
        return array.dtype
    low, high = (np.min_scalar_type(int(x)) for x in (array.min(), array.max()))
    return np.promote_types(low, high)


def _from_npz(data: bytes, place: str) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _refuse_bomb(place, sum(each.file_size for each in members))
        if {each.compress_type for each in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise InputError(place, "an unusual compression", "arrays that are stored or deflated")
        found = {}
        for each in members:
            with archive.open(each) as file:
                name = each.filename.removesuffix(".npy")
                found[name] = _array(file.read(each.file_size), f"{place}, {show(name)}")
    if len(found) < len(members):
        raise InputError(place, "an array twice", "each array once")
    return found


def _array(data: bytes, place: str) -> np.ndarray[Any, Any]:
    """Return the array in a ``.npy`` file, which has as many bytes as its header says."""
    file = io.BytesIO(data)
    old = npy.read_magic(file) == (1, 0)
    header = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
    shape, by_column, dtype = header(file)
    if dtype.kind not in "iufU" or not dtype.itemsize:
        raise InputError(place, f"the type {dtype}", "numbers, or a text")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise InputError(place, f"{len(data) - file.tell()} bytes", f"those of the shape {shape}")
    order: Literal["F", "C"] = "F" if by_column else "C"
    return np.ndarray(shape, dtype, data, file.tell(), order=order).copy()


def _refuse_bomb(place: str, size: int) -> None:
    if size > limits().mib << 20:
        raise InputError(place, f"{size >> 20} MiB of arrays", limits().at_most("mib"))


def _to_parquet(head: str, values: dict[str, Any]) -> bytes:
    """Return a table with a row for each task, or each pair of a plan, and the rest beside it."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    columns = {name: pa.array(a) for name, a in values.items() if AXES[name] in "TA"}
    beside = {n: a for n, a in values.items() if AXES[n] not in "TAH"}
    if "held_task" in values:
        order = np.lexsort((values["held_node"], values["held_task"]))
        starts = np.searchsorted(values["held_task"][order], np.arange(len(values["shape"]) + 1))
        nodes = pa.array(values["held_node"][order])
        columns["held_node"] = pa.LargeListArray.from_arrays(pa.array(starts), nodes)
    texts = {name: msgspec.json.encode(array.tolist()) for name, array in beside.items()}
    file = io.BytesIO()
    write_table(pa.table(columns, metadata={"head": head, **texts}), file, compression="zstd")
    return file.getvalue()


def _from_parquet(data: bytes, place: str) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(pa.BufferReader(data))
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    cells = sum(g.column(c).num_values for g in groups for c in range(g.num_columns))
    _refuse_bomb(place, max(8 * cells, sum(g.total_byte_size for g in groups)))
    beside = file.schema_arrow.metadata or {}
    texts = {n: beside[n.encode()] for n in AXES if n.encode() in beside}
    found: dict[str, Any] = {n: np.array(msgspec.json.decode(t)) for n, t in texts.items()}
    found["head"] = beside.get(b"head", b"{}").decode()
    for field in file.schema_arrow:
        kind = field.type
        if field.name == "held_node":
            lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
            kind = kind.value_type if lists else pa.null()
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InputError(f"{place}, {show(field.name)}", f"the type {field.type}", "numbers")
    table = file.read()
    for name in table.column_names:
        column = table[name].combine_chunks()
        if column.null_count:
            raise InputError(f"{place}, {show(name)}", f"{column.null_count} empty cells", "none")
        if name == "held_node":
            found["held_task"] = np.repeat(np.arange(len(column)), column.value_lengths())
            column = column.flatten()
        found[name] = column.to_numpy(zero_copy_only=False)
    return found
