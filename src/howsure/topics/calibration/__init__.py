"""Calibration: how far observed shares lie from the probabilities that were stated."""
