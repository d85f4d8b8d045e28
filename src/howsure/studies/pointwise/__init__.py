"""Coverage at every point, in worlds whose truth is known (Sluijterman and others)."""
