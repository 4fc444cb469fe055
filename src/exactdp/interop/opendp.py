"""OpenDP's exact samplers of discrete Gaussian and discrete Laplace noise.

No sampler is written here. OpenDP takes the scale (of the Gaussian the root of sigma2) as a double, and draws N_Z(0, scale^2) or
two-sided geometric noise, scale being exactly that double, in rational arithmetic with randomness of the operating system.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from importlib import metadata
from types import ModuleType

from exactdp.arithmetic_state import steady
from exactdp.errors import ExactDPError, InvalidInputError, MissingExtraError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, positive, rational, shown

LARGEST_COUNT = 1 << 62
_LARGEST = 10**300  # of a noise parameter and of its inverse: their doubles have all their digits
_OLDEST = (0, 14, 2)  # before it OpenDP's samplers were biased by a faulty division (opendp/opendp issue 2638)
_END = 1 << 63
_CHUNK = 1 << 18  # numbers that one call of OpenDP gets

Sampler = Callable[[Sequence[int], float], list[int]]
"""Counts and a scale to the counts with noise, independent for each of them."""


@steady
def scale_for(sigma2: Number) -> float:
    """The smallest double whose square, taken exactly, is at least `sigma2`.

    >>> scale_for(4), Fraction(scale_for(2)) ** 2 > 2, Fraction(math.nextafter(scale_for(2), 0)) ** 2 < 2
    (2.0, True, True)
    """
    wanted = positive(sigma2, "sigma2")
    if not Fraction(1, _LARGEST) <= wanted <= _LARGEST:
        raise InvalidInputError(f"sigma2 must be between 1e-300 and 1e300. Found {shown(sigma2)}.")
    scale = math.sqrt(wanted)
    while Fraction(scale) ** 2 < wanted:
        scale = math.nextafter(scale, math.inf)
    while Fraction(below := math.nextafter(scale, 0.0)) ** 2 >= wanted:
        scale = below
    return scale


@steady
def drawn_sigma2(sigma2: Number) -> Fraction:
    """The exact noise parameter of what `add_noise` draws: at least `sigma2`, by less than one part in 10^15."""
    return Fraction(scale_for(sigma2)) ** 2


@steady
def drawn_mechanism(mechanism: Mechanism) -> DiscreteGaussian | DiscreteLaplace:
    """The mechanism whose noise OpenDP draws for this one: the parameter is a double's, at least as large, by less than 1e-15.

    >>> drawn_mechanism(DiscreteGaussian(4, sensitivity=2)), float(drawn_mechanism(DiscreteLaplace("1/3")).scale)
    (DiscreteGaussian(4, sensitivity=2), 0.33333333333333337)
    """
    if isinstance(mechanism, DiscreteGaussian):
        return DiscreteGaussian(drawn_sigma2(mechanism.sigma2), mechanism.sensitivity)
    if isinstance(mechanism, DiscreteLaplace):
        scale = float(mechanism.scale)
        return DiscreteLaplace(
            Fraction(scale if Fraction(scale) >= mechanism.scale else math.nextafter(scale, math.inf)),
            mechanism.sensitivity,
        )
    raise InvalidInputError(
        "OpenDP draws discrete Gaussian and discrete Laplace noise for counts. "
        f"Found {shown(mechanism)}; give the query noise of one of these kinds."
    )


@steady
def opendp_version() -> str:
    """The version of OpenDP, refused where it is missing or older than the repair of its samplers."""
    try:
        version = metadata.version("opendp")
    except metadata.PackageNotFoundError:
        raise MissingExtraError("Noise from OpenDP", "opendp") from None
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise MissingExtraError(
            f"Noise from OpenDP {oldest} or newer (found {version}, whose noise is biased)", "opendp"
        )
    return version


@steady
def opendp_noise(counts: Sequence[int], scale: float) -> list[int]:
    """The counts plus OpenDP's independent draws of N_Z(0, scale^2), the double `scale` taken as the exact number it is.

    A sum beyond 64 bits is moved to the nearest 64-bit integer, which is post-processing.
    """
    return _noisy(counts, scale, "make_gaussian", "l2_distance", "f64")


@steady
def opendp_laplace_noise(counts: Sequence[int], scale: float) -> list[int]:
    """The same with discrete Laplace noise, P(X = x) proportional to exp(-|x| / scale)."""
    return _noisy(counts, scale, "make_laplace", "l1_distance", "i64")


def _noisy(counts: Sequence[int], scale: float, kind: str, distance: str, distance_type: str) -> list[int]:
    opendp_version()
    if counts and not -_END <= min(counts) <= max(counts) < _END:  # OpenDP's own error would show the count
        raise InvalidInputError("Counts must be integers of 64 bits. Found one that is larger.")
    domains, measurements, metrics = _opendp_modules()
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    mechanism = getattr(measurements, kind)(domain, getattr(metrics, distance)(T=distance_type), scale=scale)
    result: list[int] = []
    for start in range(0, len(counts), _CHUNK):
        result += map(int, mechanism(list(counts[start : start + _CHUNK])))
    return result


def _opendp_modules() -> tuple[ModuleType, ModuleType, ModuleType]:
    try:
        from opendp import domains, measurements, metrics, mod
    except ImportError:
        raise MissingExtraError("Noise from OpenDP", "opendp") from None
    except Exception as error:  # its library is loaded here, and where that fails it raises an Exception of no kind
        raise ExactDPError(
            "OpenDP's library cannot be loaded. Raise the limit of memory (ulimit -v), or install it again."
        ) from error
    mod.enable_features("contrib")
    return domains, measurements, metrics


@steady
def add_noise(counts: Sequence[int], sigma2: Number) -> list[int]:
    """Each count plus discrete Gaussian noise of its own, drawn by OpenDP.

    Guarantee (OpenDP's, whose sampler this is): the noises are independent draws of N_Z(0, s), s = drawn_sigma2(sigma2). For
    counts of sensitivity 1 account for DiscreteGaussian(s), not for DiscreteGaussian(sigma2): s is larger by at most one part in
    10^15, and that is not always more private. There is no seed.
    """
    whole = [_count(value, place) for place, value in enumerate(counts)]
    return opendp_noise(whole, scale_for(sigma2))


def _count(value: object, place: int) -> int:
    """A count as it may be drawn for; it is confidential, so an error names its place only, and has no other error behind it."""
    number = None
    with suppress(InvalidInputError):
        number = rational(value, "A count")
    if number is None or number.denominator != 1 or abs(number) > LARGEST_COUNT:
        raise InvalidInputError(f"A count must be a whole number of at most 2^62 in size. Found another at [{place}].")
    return number.numerator
