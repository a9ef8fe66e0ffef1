"""What holds for every test, in this process and in those that it starts."""

from __future__ import annotations

import os

# Vectors are made where a test asks for them, not by the way: that would cost every test its time.
os.environ["RALPHDECK_MEANING"] = "off"
