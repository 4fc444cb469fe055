"""Fourier sums with proved errors: the published method, the sieve, losses on a lattice or on the line, all pairs at once."""
