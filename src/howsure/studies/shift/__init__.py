"""Whether coverage survives a shift (Gustafsson, Danelljan and Schön 2023)."""
