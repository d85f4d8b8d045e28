"""Conformal prediction around models that are fitted here; scores and ranks are howsure's."""
