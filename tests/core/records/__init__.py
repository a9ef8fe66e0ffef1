"""Tests of core.records."""
