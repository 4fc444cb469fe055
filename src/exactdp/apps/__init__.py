"""Whatever shows results to people: figures, report, noisy releases, studio, command line. Nothing here computes a bound."""
