"""The section of a decision about a real Slurm on the page."""

from ronda.bench.figures.answers.driven import nodes_panel
from ronda.bench.report.charts import caption, page_chart
from ronda.bench.report.section import PageSection
from ronda.hosts.slurm.controller import Pass
from ronda.instances.tables.table import Report, Table


def driven_section(made: Pass, report: Report) -> PageSection:
    """Return the section of a decision: the nodes, the steps, and the commands in their order."""
    panel, left = nodes_panel(made)
    more = caption("slurm", "left", left=left) if left else ""
    chart = page_chart("slurm", "nodes", caption("slurm", left=more), panel)
    chart.layout |= {"barmode": "overlay"}
    rows = [
        {"command": each["line"], "of": step["what"], "outcome": each["outcome"]}
        for step in report.fields["steps"]
        for each in step["commands"]
    ]
    lines = {row["command"] for row in rows}
    parts = [part for part in report.parts if not isinstance(part, str) or part not in lines]
    if rows:
        parts.append(Table.of("Commands, in their order", rows, left=(0, 1, 2)))
    parts += [f"Assumed or not read: {line}." for line in report.notes]
    return PageSection([chart], parts, caption("slurm", "method"))
