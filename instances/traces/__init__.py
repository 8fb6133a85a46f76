"""Readers of public traces: from a log to an instance.

One file a source, with the filters that the literature uses; what they share is in `rigid` and
`table`. Making the packaged instances from them is in ``tools/recipes``. All load pandas,
so import by module path: ``from ronda.instances.traces.philly import read_philly``.
"""
