"""The rules of a site as rows and terms over options, and as accounts of jobs in order.

Each rule has a module. Its rows (`ronda.formulations.site.stated`) are for searches over options;
its account (`ronda.formulations.site.accounts`) is for policies that add jobs one by one; and what
it says of nodes (`ronda.formulations.site.nodes`) is for placement. The checker has a statement of
its own (`ronda.instances.check.site`).
"""
