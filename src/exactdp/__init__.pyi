# The public names and where each lives: type checkers read this file, and so does __init__.py when a name is first used.
from exactdp import census as census
from exactdp import conversions as conversions
from exactdp import guarantees as guarantees
from exactdp import reference as reference
from exactdp import theory as theory
from exactdp.accounting.certificates.certificate import Certificate as Certificate
from exactdp.accounting.certificates.certificate import certify as certify
from exactdp.accounting.certificates.verify import Verification as Verification
from exactdp.accounting.certificates.verify import verify as verify
from exactdp.accounting.composition import Composition as Composition
from exactdp.accounting.cross_check import CrossCheck as CrossCheck
from exactdp.accounting.explanation import Explanation as Explanation
from exactdp.accounting.tradeoff_curve import TradeOffCurve as TradeOffCurve
from exactdp.brackets import Bounds as Bounds
from exactdp.errors import AccuracyError as AccuracyError
from exactdp.errors import AccuracyWarning as AccuracyWarning
from exactdp.errors import ExactDPError as ExactDPError
from exactdp.errors import InvalidInputError as InvalidInputError
from exactdp.errors import LatticeTooFineError as LatticeTooFineError
from exactdp.guarantees.calibration import Calibration as Calibration
from exactdp.guarantees.calibration import calibrate as calibrate
from exactdp.guarantees.calibration import calibrate_sigma2 as calibrate_sigma2
from exactdp.guarantees.calibration import target as target
from exactdp.guarantees.comparison import Comparison as Comparison
from exactdp.guarantees.risk import Risk as Risk
from exactdp.guarantees.tightest_mu import GaussianDP as GaussianDP
from exactdp.guarantees.tightest_mu import tightest_mu as tightest_mu
from exactdp.interop.frames import to_frame as to_frame
from exactdp.interop.frames import write_table as write_table
from exactdp.interop.json_objects import from_json as from_json
from exactdp.interop.json_objects import to_json as to_json
from exactdp.mechanisms.approximate_dp import ApproximateDP as ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace as DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian as Gaussian
from exactdp.mechanisms.outcomes import Outcomes as Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse

__version__: str
__all__: list[str]
