"""The demo: a scratch copy of the sample project in which loops run."""

from core.demo.check import DemoReport, demo_check
from core.demo.player import DemoPlayer, scratch_project

__all__ = ["DemoPlayer", "DemoReport", "demo_check", "scratch_project"]
