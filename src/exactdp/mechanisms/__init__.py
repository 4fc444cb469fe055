"""Noise and its privacy loss: one file for each mechanism."""
