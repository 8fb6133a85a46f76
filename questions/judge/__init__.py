"""What a cluster's own schedule cost: how much of the waiting in a log there need not have been.

A log is cut off, and says little of the cluster. Space counts as free only where the log proves it
(`space`), and as surely taken only where the cluster is full (`bound`). In the proven space, the
same jobs start in other `orders`. `answer` subtracts one from the other, and gives a cause to each
part of the waiting.
"""
