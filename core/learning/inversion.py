"""Compatibility import path of `reference.patterns` and `inversion_rules`."""

from core.learning.inversion_rules import *  # noqa: F403
from core.learning.reference.patterns import *  # noqa: F403
