"""Conditional congruence: how far predictive laws are from nature's, at every input."""
