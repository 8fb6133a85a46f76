"""Rows of any table of jobs as runs, by a mapping of its columns."""

from collections.abc import Iterator
from datetime import date
from math import isnan
from pathlib import Path

from ronda.instances.traces.columns import Columns
from ronda.instances.traces.logs.runs import EVERY, LogFilter, LogRun, RowAccount
from ronda.instances.traces.mapped import own_rows, refuse_empty, table_of, tell_runs_apart
from ronda.instances.traces.mapped import unreadable as unreadable_rows
from ronda.instances.traces.table import faults, passing, rows


def table_runs(
    path: Path, columns: Columns, account: RowAccount, choice: LogFilter = EVERY
) -> Iterator[LogRun]:
    """Yield a run for each row that can be a job, and count the others with their reasons.

    Virtual clusters are partitions. A job whose start the table does not tell is supposed to start
    with its submission. A second row of an id is a job of its own, ``id#2``.

    Raises
    ------
    InputError
        As of `ronda.instances.traces.mapped.read_mapped`.
    """
    table = table_of(path, columns, by_name=None)
    frame, dropped = own_rows(table)
    account.rows += len(table.raw)
    why = unreadable_rows(table, frame, dropped)
    why |= {fault.why: fault.bad for fault in faults(frame, table.columns)}
    since_s = (table.columns.since - date(1970, 1, 1)).total_seconds()
    within = (frame.submit_s + since_s).map(choice.within).astype(bool)
    why |= {"a submission outside the window": ~within}
    if choice.partitions:
        why |= {"another partition": ~frame.vc.isin(choice.partitions)}
    drawn = frame.job_id.map(choice.drawn).astype(bool)
    frame, left_out = passing(frame, why | {"a job that is not in the sample": ~drawn})
    dropped.add(left_out)
    account.dropped.add(dropped)
    account.unread = table.unread
    refuse_empty(frame, account.dropped, table.path)
    account.told["further runs of a job under its id, each a job"] += tell_runs_apart(frame)
    for row in rows(frame):
        supposed = isnan(row.start_s)
        start_s = since_s + (row.submit_s if supposed else row.start_s)
        run = LogRun(
            place=f"row {row.row}",
            job=row.job_id,
            state=row.status.partition(" ")[0],
            submit_s=since_s + row.submit_s,
            start_s=start_s,
            end_s=start_s + row.duration_s,
            ran_s=row.duration_s,
            limit_s=row.limit_s,
            user=row.user,
            partition=row.vc,
            name=row.name,
            gpus=float(row.num_gpus),
            kinds=tuple(row.kinds),
            supposed=supposed,
        )
        account.until_s = max(account.until_s, run.known_s)
        yield run
