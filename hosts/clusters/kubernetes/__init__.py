"""Readers of Kubernetes clusters: the objects of Kueue, of KAI, and of Kubernetes' own scheduler.

`objects` reads what ``kubectl get … -o json`` and ``-o yaml`` print. Jobs are Kueue's workloads
(`kueue`), or groups of pods (`podgroups`, `kai`); `floor` has the nodes.
"""
