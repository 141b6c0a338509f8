"""The schedulers that plait ships, one in each file, by their names in scenarios.

Seven have the same rules as those of the laboratory kernel (kernel/schedulers/*.c). `bandit` and `parity` exist only
here.
"""

from plait.prototype.schedulers.balanced import Balanced
from plait.prototype.schedulers.bandit import Bandit
from plait.prototype.schedulers.blest import Blest
from plait.prototype.schedulers.capped import Capped
from plait.prototype.schedulers.ecf import Ecf
from plait.prototype.schedulers.minrtt import MinRtt
from plait.prototype.schedulers.parity import Parity
from plait.prototype.schedulers.redundant import Redundant
from plait.prototype.schedulers.roundrobin import RoundRobin

SCHEDULERS = {
    "balanced": Balanced,
    "bandit": Bandit,
    "blest": Blest,
    "capped": Capped,
    "ecf": Ecf,
    "minrtt": MinRtt,
    "parity": Parity,
    "redundant": Redundant,
    "roundrobin": RoundRobin,
}
