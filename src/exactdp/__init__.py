"""exactdp: exact, certified differential-privacy accounting for integer-valued noise."""

from exactdp import census, reference
from exactdp.composition import Bounds, Composition
from exactdp.errors import AccuracyError, ExactDPError, InvalidInputError, LatticeTooFineError
from exactdp.explain import Explanation
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.records import Certificate, Verification, certify, verify
from exactdp.tradeoff import TradeOffCurve

__version__ = "0.1.0"

__all__ = [
    "AccuracyError",
    "Bounds",
    "Certificate",
    "Composition",
    "DiscreteGaussian",
    "ExactDPError",
    "Explanation",
    "InvalidInputError",
    "LatticeTooFineError",
    "TradeOffCurve",
    "Verification",
    "__version__",
    "census",
    "certify",
    "reference",
    "verify",
]
