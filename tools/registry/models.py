"""The model of a round as a file for other solvers, and its optimum by HiGHS."""

import gzip
from pathlib import Path

import highspy
import numpy as np

from ronda.instances.base import Floats
from ronda.instances.clock import Deadline
from ronda.instances.files import storage
from ronda.instances.round import Round
from ronda.solvers.as_one import AsOne
from ronda.solvers.decision.by_file import model_of
from ronda.solvers.exact.highs import PRECISE, PRECISION, run, silent
from ronda.solvers.exact.model_file import export
from ronda.solvers.policies.optimising.milp import Milp
from tools.registry.records import Model

PACKED_KIB = 64
"""Compressed models up to this size are packaged; others are written when they are asked for."""

SOLVED = 3000
"""Models of up to so many columns are solved."""

GAP, PATIENCE_S = 1e-6, 600.0
"""To which the optimum of a model is known, and the seconds for it."""


def numbers(path: Path) -> Floats:
    """Return all numbers of a model file, as HiGHS reads it, and where those of rows stand.

    Their last digits, and thus the text, are not the same on all processors.
    """
    highs = silent()
    highs.readModel(str(path))
    model = highs.getLp()
    matrix, rows = model.a_matrix_, (model.row_lower_, model.row_upper_)
    columns = model.col_cost_, model.col_lower_, model.col_upper_
    return np.concatenate([*columns, *rows, matrix.start_, matrix.index_, matrix.value_])


def write_model(round: Round, folder: Path) -> Model:
    """Write the model of counts that `ronda export` writes as ``NAME.mps``, without its head."""
    path = folder / f"{round.name}.mps"
    question = Milp().question(AsOne(round).round, Deadline(None), seed=0)
    model = model_of(question, exact=False)
    export(model, path, ["Minimise minus the objective that `ronda solve` reports."])
    told = np.abs(numbers(path))
    content = float(np.log1p(told[np.isfinite(told)]).sum())
    return Model(content=content, columns=model.nvariables(), rows=model.nconstraints())


def pack(path: Path, folder: Path) -> None:
    """Compress a model into a folder, if that makes it small."""
    packed = gzip.compress(path.read_bytes(), mtime=0)
    if len(packed) <= PACKED_KIB << 10:
        storage.write_bytes(folder / f"{path.name}.gz", packed)


def optimum(path: Path) -> float | None:
    """Return the largest objective of a model, by HiGHS; None if it was not found in time.

    It is proven to a gap of `GAP`, from above.
    """
    precise = {f"{what}_feasibility_tolerance": PRECISION for what in PRECISE}
    highs = silent(mip_rel_gap=GAP, **precise)
    if highs.readModel(str(path)) != highspy.HighsStatus.kOk:
        return None
    status = run(highs, PATIENCE_S)
    return -highs.getInfo().mip_dual_bound if status == highspy.HighsModelStatus.kOptimal else None
