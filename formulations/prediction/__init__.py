"""What is believed of sizes and speeds before they are known, and how it is learnt.

What really happens (`truth`) is known to the driver alone.
"""
