"""Inputs that are not vectors become embeddings: texts, images, and tables of mixed types."""

from howsure.inputs.encoders.encode import encode
from howsure.inputs.encoders.tabular import TabularEncoder, tabular_encoder

__all__ = ["TabularEncoder", "encode", "tabular_encoder"]
