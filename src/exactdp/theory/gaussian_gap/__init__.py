"""Proved bounds of the gap between the exact delta and the Gaussian formula."""
