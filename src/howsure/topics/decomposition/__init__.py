"""MCB, DSC and UNC: what is lost to miscalibration, and what the forecast knows."""
