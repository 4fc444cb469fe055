"""Noise and its privacy loss: one file for each mechanism.

To add one: a file with a frozen subclass of `Mechanism` (its parameters, `rho`, `loss`); if the loss takes finitely many values,
`FiniteLoss` does the rest, else subclass `Loss` and `Tilted` (loss.py says what each must promise; gaussian.py is short).
Then name it in exactdp/__init__.pyi, in interop/json_objects.py, and among the cases of tests/mechanisms/test_mechanisms.py.
"""
