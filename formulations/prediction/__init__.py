"""What is believed of work and progress before it is known.

Here stand distributions of progress and how they are learnt. What really happens (`truth`) is known
to the driver alone.
"""
