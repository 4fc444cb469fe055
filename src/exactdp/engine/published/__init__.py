"""Section 4 as printed: Steps 1 to 4 and Algorithm 1, in balls, which shares no code with the rest of the engine."""
