"""Prepares a release: the checks before it, the frozen migrations, and the files that a package index gets."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
