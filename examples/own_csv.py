"""Jobs from a CSV file of one's own: columns that are named alike become fields of jobs."""

import csv
from io import StringIO

import ronda

TABLE = """\
id,user,gpus,work
train-1,ada,4,7200
train-2,bob,2,600
train-3,ada,1,60
"""

cluster = ronda.uniform_cluster(ronda.GpuType(name="V100", memory_gib=16), nodes=1, gpus_per_node=4)
jobs = []
for row in csv.DictReader(StringIO(TABLE)):  # your file: open("queue.csv")
    gpus = int(row["gpus"])
    at_one = {"gpus": [gpus], "rate": [1.0]}  # a second of work a second
    jobs.append({**row, "gpus": gpus, "work": float(row["work"]), "rates": at_one})
plan = ronda.solve(ronda.make_round(cluster, jobs), "srtf")
print("run:", *plan.allocations)
