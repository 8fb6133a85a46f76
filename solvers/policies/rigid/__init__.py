"""Policies that give jobs the GPUs that they asked for, at full clock.

`queues` holds those that stop nothing (fifo, sjf, qssf), `preemptive` those that do (srtf, las,
gittins), and `tiresias` has two queues of its own. Engines and placement are in other rooms.
"""
