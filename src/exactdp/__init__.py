"""exactdp: exact, certified differential-privacy accounting for integer-valued noise."""

from exactdp import census, reference
from exactdp.composition import Bounds, Composition
from exactdp.errors import AccuracyError, AccuracyWarning, ExactDPError, InvalidInputError, LatticeTooFineError
from exactdp.explain import Explanation
from exactdp.mechanisms.black_box import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.records import Certificate, Verification, certify, verify
from exactdp.tradeoff import TradeOffCurve

__version__ = "0.1.0"

__all__ = [
    "AccuracyError",
    "AccuracyWarning",
    "ApproximateDP",
    "Bounds",
    "Certificate",
    "Composition",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExactDPError",
    "Explanation",
    "Gaussian",
    "InvalidInputError",
    "LatticeTooFineError",
    "Outcomes",
    "RandomizedResponse",
    "TradeOffCurve",
    "Verification",
    "__version__",
    "census",
    "certify",
    "reference",
    "verify",
]
