"""Tests of cues and activation."""
