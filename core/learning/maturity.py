"""Names of `reference.maturity` and `states` at their original import path."""

from core.learning.reference.maturity import *  # noqa: F403
from core.learning.states import *  # noqa: F403
