"""The names of `core.learning.reference.storage` at their original import path."""

from core.learning.errors import ErrorStorage, MemoryErrors  # noqa: F401
from core.learning.reference.storage import *  # noqa: F403
