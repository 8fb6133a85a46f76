"""The comparison of solvers: suites, the runner, statistics and figures."""
