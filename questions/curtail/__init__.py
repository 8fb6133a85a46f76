"""The supply curve of flexible power: what each kilowatt less costs over a window.

The modules are the records of a curve (`curve`), the pass over power caps that gives plans and
bounds (`sweep`), what can be done within seconds (`swift`), the answer and who bears the loss
(`answer`), whole runs with and without a cap (`driven`), and the report (`report`).
"""
