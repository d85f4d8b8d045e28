"""Whether intervals and label sets follow how hard an input is (Jang and Lee 2025)."""
