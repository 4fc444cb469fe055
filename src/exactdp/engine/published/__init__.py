"""Section 4 of the paper as printed, in its own letters and in balls: Steps 1 to 4, their plan, and the theorem that sums up.

A second route to every answer, which shares no code with the rest of the engine.
"""
