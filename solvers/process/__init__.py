"""A process of its own for what may crash or hang: it is asked in bytes, and answers in bytes.

Here stand the host's end, which holds the process to its time and memory and kills it with all that
it started, and the other end, which goes with its host. What is answered there is the asker's
(`ronda.horizon.isolated`, `ronda.hosts.serving`, `ronda.bench.runs`). Nothing is imported here, so
that the child starts small.
"""
