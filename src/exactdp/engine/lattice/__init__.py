"""Fourier sums for losses on a lattice: compositions of discrete Gaussians with rational noise."""
