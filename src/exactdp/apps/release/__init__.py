"""Noise drawn for a design, and the audit of what was drawn."""
