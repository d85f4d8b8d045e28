"""The version of these studies, which is that of the howsure they come with."""

__version__ = "0.2.0"
