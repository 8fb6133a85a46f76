"""The checker's own statement of the rules of a site.

Each rule has a module, which reads records alone: allocations, jobs and the site. The rows of the
same rules over options are in `ronda.formulations.site`, whose arithmetic is another on purpose.
"""
