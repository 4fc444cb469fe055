"""What `-m` takes: noise as a short text such as 5/2*20, sigma=2.5*50 or laplace(2)*3, or a composition as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from exactdp.accounting.certificates.record import record_text
from exactdp.accounting.composition import Composition
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.integer_noise import IntegerNoise
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.poisson_sampled import PoissonSampled
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.mechanisms.skellam import Skellam
from exactdp.numbers import shown, whole

METAVAR = "SIGMA2[:SENSITIVITY][*COUNT]"
HELP = "Noise, or JSON; repeatable. Also sigma=2.5*50, laplace(2)*3, gaussian(sigma=3), poisson(gaussian(1), 0.01)*99."

_KINDS: dict[str, Callable[..., Mechanism]] = {
    "discretegaussian": DiscreteGaussian,
    "gaussian": Gaussian,
    "discretelaplace": DiscreteLaplace,
    "laplace": DiscreteLaplace,  # the one there is for counts; the command says so
    "continuouslaplace": Laplace,
    "reallaplace": Laplace,
    "randomizedresponse": RandomizedResponse,
    "approximatedp": ApproximateDP,
    "skellam": Skellam,
    "binomial": IntegerNoise.binomial,
    "truncatedgaussian": IntegerNoise.truncated_gaussian,
    "clampedgaussian": IntegerNoise.clamped_gaussian,
    "truncatedlaplace": IntegerNoise.truncated_laplace,
    "clampedlaplace": IntegerNoise.clamped_laplace,
    "staircase": IntegerNoise.staircase,
    "cellkey": IntegerNoise.cell_key,
    "table": IntegerNoise.from_csv,
}
_NAMES = (
    "discrete_gaussian, gaussian, laplace, real_laplace, randomized_response, approximate_dp, poisson, skellam, binomial, "
    "truncated_gaussian, clamped_gaussian, truncated_laplace, clamped_laplace, staircase, cell_key, table"
)
_PLAIN = re.compile(
    r"(?:(?P<name>sigma2?)\s*=)?(?P<number>[^:*=(){}]+)(?::(?P<sensitivity>[^:*]+))?(?:\*(?P<count>[^:*]+))?"
)
_CALL = re.compile(r"(?P<kind>[A-Za-z][A-Za-z _-]*)\((?P<arguments>[^()]*)\)\s*(?:\*(?P<count>[^:*()]+))?")
_SAMPLED = re.compile(
    r"poisson(?:[ _-]?sampled)?\((?P<inner>[^()]*(?:\([^()]*\))?[^(),]*),(?P<rate>[^()]*)\)\s*(?:\*(?P<count>[^:*()]+))?",
    re.I,
)
_WHOLE_ARGUMENTS = {"sensitivity", "categories", "bound", "trials", "step"}


def read_mechanisms(texts: Iterable[str]) -> Composition:
    """The composition of everything that the texts name.

    >>> read_mechanisms(["5/2:1*20", "sigma=2.5*50", "laplace(2)*3"])
    Composition(20 x DiscreteGaussian(5/2) + 50 x DiscreteGaussian(25/4) + 3 x DiscreteLaplace('2'))
    >>> read_mechanisms(["poisson(gaussian(sigma=1), 0.01)*1000", "real_laplace(2)"])
    Composition(1 x Laplace('2') + 1000 x PoissonSampled(Gaussian('1'), '1/100'))
    """
    counts: Counter[Mechanism] = Counter()
    for text in texts:
        counts.update(_read(text.strip()))
    return Composition(counts)


def read_object(path: Path) -> Any:
    """The object of a JSON file that `exactdp.to_json` wrote."""
    try:
        return _from_json(record_text(path))
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def _from_json(text: str) -> Any:
    from exactdp.interop.json_objects import from_json  # loads every kind of object, which few commands need

    return from_json(text)


def _read(text: str) -> Counter[Mechanism]:
    if text.startswith("{") or text.lower().endswith(".json"):
        found = _from_json(text) if text.startswith("{") else read_object(Path(text))
        if isinstance(found, Mechanism):
            return Counter([found])
        if isinstance(found, Composition):
            return Counter(dict(found.mechanisms))
        raise InvalidInputError(
            f"--mechanism takes the JSON of a mechanism or of a composition. Found a {type(found).__name__}; give it as DESIGN."
        )
    if sampled := _SAMPLED.fullmatch(text):
        inner = list(_read(sampled["inner"].strip()).elements())
        if len(inner) != 1:
            raise InvalidInputError(
                f"poisson takes one mechanism and a rate, such as poisson(gaussian(sigma=1), 0.01)*1000. Found {shown(text)!r}."
            )
        rate = sampled["rate"].partition("=")[2] or sampled["rate"]
        return Counter({PoissonSampled(inner[0], rate.strip()): whole(sampled["count"] or 1, "count", 1)})
    if call := _CALL.fullmatch(text):
        mechanism = _made(call["kind"], call["arguments"], text)
        return Counter({mechanism: whole(call["count"] or 1, "count", 1)})
    parts = _PLAIN.fullmatch(text)
    if parts is None:
        raise InvalidInputError(
            f"--mechanism takes {METAVAR}, such as 5/2:1*20, or sigma=2.5*50, or laplace(2)*3. Found {text!r}."
        )
    noise = {parts["name"] or "sigma2": parts["number"].strip()}
    sensitivity = whole(parts["sensitivity"] or 1, "sensitivity", 1)
    return Counter({DiscreteGaussian(sensitivity=sensitivity, **noise): whole(parts["count"] or 1, "count", 1)})


def _made(kind: str, arguments: str, text: str) -> Mechanism:
    """A mechanism by its name, which may be written with spaces, hyphens or underscores, and its arguments."""
    make = _KINDS.get(re.sub(r"[ _-]", "", kind).lower())
    if make is None:
        raise InvalidInputError(f"The noise of --mechanism is one of {_NAMES}. Found {shown(kind)}.")
    given: list[str] = []
    named: dict[str, Any] = {}
    for part in filter(None, map(str.strip, arguments.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name in named:
            raise InvalidInputError(f"An argument must be given once. Found {shown(name)} twice in {shown(text)!r}.")
        if not equals:
            given.append(name)
        else:
            named[name] = (
                whole(value, name, 1) if name in _WHOLE_ARGUMENTS and make not in (Gaussian, Laplace) else value
            )
    try:
        return make(*given, **named)
    except OSError as error:
        raise InvalidInputError(f"The table of {shown(text)!r} cannot be read: {error.strerror}.") from None
    except TypeError:
        raise InvalidInputError(
            f"{shown(kind)} takes numbers, or names such as sensitivity=2, in parentheses. Found {shown(text)!r}."
        ) from None
