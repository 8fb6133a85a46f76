"""The best results known on the benchmark set, by whom, and whether they hold.

``python -m tools.registry`` checks and improves them. The rounds and instances are packaged
(`ronda.instances.files.packaged`); solvers are called by `update` alone.
"""
