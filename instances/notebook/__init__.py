"""What notebooks show of an instance, a round, a plan and a schedule: a small table each, as HTML.

Names are data: every text is escaped. No picture and no plotting library; those are in
`ronda.bench`.
"""
