"""The mutants of `exactdp release`: noise counted once for two, pairs left out, nodes spent twice."""

from __future__ import annotations

TESTS = {
    f"{name}.py": ["tests/apps/test_release_paths.py"]
    for name in ("apps/release/counts", "apps/release/noisy_table", "apps/release/path_noise", "interop/opendp")
}

MUTANTS = [
    (
        "the least of the pairs of paths",
        "apps/release/path_noise.py",
        "(max(bounds[end] for bounds",
        "(min(bounds[end] for bounds",
    ),
    (
        "no record moves to another path",
        "apps/release/path_noise.py",
        "if not absent & set(pair))",
        "if not absent & set(pair) and pair[0] == pair[1])",
    ),
    (
        "noise that is drawn alike counted once",
        "apps/release/path_noise.py",
        "counts[drawn_mechanism(mechanism)] += count",
        "counts[drawn_mechanism(mechanism)] = count",
    ),
    (
        "two noises in one cell",
        "apps/release/path_noise.py",
        "if len(set(noises.values())) > 1:",
        "if len(set(noises.values())) > 2:",
    ),
    (
        "a node spent once for each of its paths",
        "apps/release/counts.py",
        "if i not in at.values()]",
        "if i not in (at['level'], at['query'], at['count'])]",
    ),
    (
        "a path without some of its queries",
        "apps/release/counts.py",
        "if (number, (level, query)) not in there:",
        "if all((other, (level, query)) not in there for other in self._allocations):",
    ),
    (
        "the shortest decimal of a bound",
        "apps/release/noisy_table.py",
        "return bound if is_safe else",
        "return bound if True else",
    ),
    (
        "Laplace noise a little too small",
        "interop/opendp.py",
        "scale if Fraction(scale) >= mechanism.scale",
        "scale if True",
    ),
    (
        "Laplace noise drawn as Gaussian",
        "apps/release/noisy_table.py",
        "sampler = opendp_noise if kind == _GAUSSIAN else opendp_laplace_noise",
        "sampler = opendp_noise",
    ),
]
