"""Mechanisms that add integer noise to a count."""
