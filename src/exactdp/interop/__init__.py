"""Bridges to other privacy libraries. Nothing here is imported by `import exactdp`; each module needs its own extra."""
