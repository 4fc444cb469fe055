"""Which noise is best: every family calibrated to one target, the best table that was found, and a bound that no noise beats.

race              the families side by side, at an equal guarantee
optimal_noise     the best table of whole numbers that was found, and how far from the best possible it can be
lower_bound       a certificate in exact fractions: any multipliers give a bound (docs/theory/optimal-noise.md)
"""
