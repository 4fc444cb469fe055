"""Which nodes of a Fourier sum matter: windows, bands of frequency, lattice reduction, exact phases."""
