"""A separate process for code that may crash or hang, with questions and answers in bytes.

This package holds both ends. The host's end enforces the limits on time and memory, and kills the
process with all of its descendants. The child's end exits together with its host. The caller
decides which function answers (`ronda.horizon.isolated`, `ronda.hosts.serving`,
`ronda.bench.runs`). This module imports nothing, so that the child starts small.
"""
