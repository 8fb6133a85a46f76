"""The rules of production schedulers: Kueue-like, KAI-like, Slurm-like, and dominant shares.

They decide under the same quotas, priorities, limits and needs as every other policy, so that
comparisons are fair. docs/site.md says what each leaves out (section "Comparators").
"""
