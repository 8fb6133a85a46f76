"""The best results known on the benchmark set, by whom, and whether they hold.

Here stand the file of the registry, its check, its update, and results by version. The rounds and
instances are packaged (`ronda.instances.files.catalogue`); solvers are called by `update` alone.
"""
