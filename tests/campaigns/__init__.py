"""The fault campaign, one module for each family: `make faults` runs them all (tests/faults.py)."""
