"""Compatibility import path of `core.learning.reference.storage`."""

from core.learning.errors import ErrorStorage, MemoryErrors  # noqa: F401
from core.learning.reference.storage import *  # noqa: F403
