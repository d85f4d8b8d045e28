"""Image tasks by name: two synthetic ones, drawn here, and ten real ones, read from raw downloads.

They are those of the shift benchmark of Gustafsson, Danelljan and Schön (2023), and four of the
conditional congruence experiments of Young et al. (2025).
"""

from howsure.data.images.cells import draw_cells
from howsure.data.images.chairs import draw_chairs
from howsure.data.images.naming import image_names, image_task
from howsure.data.images.task import ImageTask, network_input

__all__ = [
    "ImageTask",
    "draw_cells",
    "draw_chairs",
    "image_names",
    "image_task",
    "network_input",
]
