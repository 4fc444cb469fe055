"""exactdp: exact, certified differential-privacy accounting for integer-valued noise."""

from exactdp import census, conversions, guarantees, reference, theory
from exactdp.calibration import Calibration, calibrate, calibrate_sigma2, target
from exactdp.comparison import Comparison
from exactdp.composition import Bounds, Composition
from exactdp.cross_check import CrossCheck
from exactdp.errors import AccuracyError, AccuracyWarning, ExactDPError, InvalidInputError, LatticeTooFineError
from exactdp.exchange import from_json, to_json
from exactdp.explain import Explanation
from exactdp.frames import enable_notebook_display, to_frame, write_table
from exactdp.gdp import GaussianDP, tightest_mu
from exactdp.mechanisms.black_box import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.records import Certificate, Verification, certify, verify
from exactdp.risk import Risk
from exactdp.tradeoff import TradeOffCurve

__version__ = "0.1.0"

__all__ = [
    "AccuracyError",
    "AccuracyWarning",
    "ApproximateDP",
    "Bounds",
    "Calibration",
    "Certificate",
    "Comparison",
    "Composition",
    "CrossCheck",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExactDPError",
    "Explanation",
    "Gaussian",
    "GaussianDP",
    "InvalidInputError",
    "LatticeTooFineError",
    "Outcomes",
    "RandomizedResponse",
    "Risk",
    "TradeOffCurve",
    "Verification",
    "__version__",
    "calibrate",
    "calibrate_sigma2",
    "census",
    "certify",
    "conversions",
    "from_json",
    "guarantees",
    "reference",
    "target",
    "theory",
    "tightest_mu",
    "to_frame",
    "to_json",
    "verify",
    "write_table",
]

enable_notebook_display()
