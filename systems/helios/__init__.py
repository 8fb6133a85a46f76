"""Which nodes sleep where nodes are the question: CES, lot sizing, wake-or-wait.

`ces`, `lot_sizing` and `controllers` decide how many nodes of a demand series are awake (``ronda
sleep``), and `outcome` says what comes of it; `ces` and `wake_or_wait` hold policies,
whose jobs really wait for nodes. `forecasts` and `boosted` say what will be needed. How
long an idle node of any round stays awake is in `ronda.formulations.sleeping`.
"""
