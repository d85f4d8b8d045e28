"""Experiments that make evaluation sets on purpose, and what comes out of them."""
