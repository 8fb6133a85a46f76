"""What nodes draw with and without jobs, and what is left for more.

Here stand the power of hosts and idle GPUs, of waking, and of racks. What a job draws is in
`ronda.formulations.models.power`; which idle nodes sleep, in `ronda.formulations.sleeping`.
"""
