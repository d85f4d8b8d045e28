"""How far predictions are from the true conditional law (Young and others 2025)."""
