"""The demo: a scratch copy of the sample project in which loops run."""

from core.cli.demo.player import DemoPlayer, DemoReport, demo_check, scratch_project

__all__ = ["DemoPlayer", "DemoReport", "demo_check", "scratch_project"]
