"""The numerical engine (Section 4 of the paper): certified Fourier sums, on a lattice, on the line, for whole families."""
