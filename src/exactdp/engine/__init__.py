"""The engine: lattice -> tilt -> sieve -> plan -> evaluate. docs/theory/engine.md proves each step."""
