"""What tenants and groups of jobs hold, owe each other and may have: quotas, guarantees, past use.

It knows no nodes. The rows that are stated here are joined with those of other rules in
`ronda.formulations.site`.
"""
