"""Networks made of torch modules, for images or anything else that a module takes.

`train_module` trains one, with any head on any backbone; `ImageNetwork` is the same
as a method, alone or as an ensemble.
"""

from howsure_studies.methods.deep.modules.backbones import (
    Backbone,
    backbone_named,
    resnet34,
    small,
    soften,
)
from howsure_studies.methods.deep.modules.method import ImageFit, ImageNetwork
from howsure_studies.methods.deep.modules.network import ModuleNetwork
from howsure_studies.methods.deep.modules.training import train_module
from howsure_studies.methods.deep.training import ModuleTraining, recipe_named

__all__ = [
    "Backbone",
    "ImageFit",
    "ImageNetwork",
    "ModuleNetwork",
    "ModuleTraining",
    "backbone_named",
    "recipe_named",
    "resnet34",
    "small",
    "soften",
    "train_module",
]
