"""How solvers compare: suites, the runner, statistics, figures."""
