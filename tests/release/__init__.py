"""Prepares a release: checks it, freezes its migrations, and builds the files for a package index."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
