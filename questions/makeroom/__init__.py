"""Room for a waiting job: which running jobs to move or stop so that it starts now, at least harm.

The jobs that may be disturbed are chosen first (`loose`). A Pyomo model decides who stays, moves or
stops (`model`), and its solution becomes actions in turn (`actions`), which are checked without the
model (`verify`).
"""
