"""Figures of the paper, of releases and of the theory."""
