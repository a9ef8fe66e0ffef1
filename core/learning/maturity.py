"""Compatibility import path of `reference.maturity` and `states`."""

from core.learning.reference.maturity import *  # noqa: F403
from core.learning.states import *  # noqa: F403
