"""Readers that convert logs and traces to instances.

Traces of rigid jobs are tables whose columns are described by data. `columns.NAMED` has the columns
of public traces, and `published` the filters that the literature uses. ``tools/recipes`` makes the
packaged instances from traces. All readers load pandas, so import them by module path: ``from
ronda.instances.traces.published import read_philly``.
"""
