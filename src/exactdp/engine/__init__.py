"""Fourier sums with proved errors: the published method, the sieve, losses on a lattice, losses on the line, all pairs at once.

Factors of safety mean the same in mechanisms, engine and theory. Each is far above what it covers, and far below what it costs:

    1 -/+ 1e-12    9,000 units of rounding: a chain of products, roots and calls of libm loses fewer than a hundred
    1 -/+ 1e-9     9 million units: a sum of non-negative doubles loses at most a unit for each term, of which there are 4 million
    1 + 1e-6       a bound of errors that was itself added up in doubles
    1.001          a remainder that is negligible next to the value
    1e-300         what underflows
"""
