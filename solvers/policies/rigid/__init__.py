"""Policies that give jobs the GPUs that they asked for, at full clock.

`queues` holds the policies that stop no job (fifo, sjf, qssf). `preemptive` holds those that do
(srtf, las, gittins). `tiresias` has two queues of its own. Engines and placement are in other
packages.
"""
