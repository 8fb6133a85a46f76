"""Pictures and tables of runs, in one style."""
