"""Tasks on many nodes: rules that place them in order, HiGHS on nodes, and what prices prove."""
