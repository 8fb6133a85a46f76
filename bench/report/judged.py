"""The section of a judged log on the page."""

from ronda.bench.figures.answers.judge import causes_panel, waiting_panel
from ronda.bench.report.charts import PageChart, caption, page_chart
from ronda.bench.report.section import PageSection
from ronda.questions.judge.judged import JudgedLog
from ronda.questions.judge.report import judge_report


def judged_section(found: JudgedLog) -> PageSection:
    """Return the section of a judged log."""
    queues, charts = [q for q in found.queues if q.judgement.waited_s > 0], list[PageChart]()
    if queues:
        charts = [page_chart("judge", "causes of waiting", caption("judge"), causes_panel(queues))]
        charts[0].layout |= {"barmode": "overlay", "margin": {"r": 160}}
    told = caption("judge", "queue")
    charts += (page_chart("judge", q.judgement.queue, told, waiting_panel(q)) for q in queues)
    return PageSection(charts, list(judge_report(found).parts), caption("judge", "method"))
