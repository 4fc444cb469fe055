"""The grid: any losses that can be listed, split between the points of one grid and convolved by FFT."""
