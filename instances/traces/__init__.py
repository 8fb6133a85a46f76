"""Readers of traces: from a log to an instance.

Traces of rigid jobs are tables, whose columns are data: those of public ones stand in
`columns.NAMED`, with the filters that the literature uses in `published`. Making the packaged
instances from them is in ``tools/recipes``. All load pandas, so import by module path:
``from ronda.instances.traces.published import read_philly``.
"""
