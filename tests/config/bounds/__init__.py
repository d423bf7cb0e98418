"""Tests that all input from outside is limited in size and in the CPU time that it takes."""
