"""Fourier sums and enumeration for any loss, without a lattice."""
