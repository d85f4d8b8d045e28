"""Image tasks by name: two drawn here, in six variants, and ten read from raw downloads.

They are those of the shift benchmark of Gustafsson, Danelljan and Schön (2023), and four of the
conditional congruence experiments of Young et al. (2025). Beside them stand two small real sets:
`read_blood` and `rotated_digits` (`read_digits` as they are); and drawn letters in colour, whose
difficulty is known (`draw_letters`).
"""

from howsure_studies.methods.deep.modules.inputs import network_input
from howsure_studies.tasks.images.cells import draw_cells
from howsure_studies.tasks.images.chairs import draw_chairs
from howsure_studies.tasks.images.letters import draw_letters
from howsure_studies.tasks.images.naming import (
    image_names,
    image_task,
    settled,
    settled_source,
    settled_task,
)
from howsure_studies.tasks.images.small import (
    BLOOD,
    DIGITS,
    read_blood,
    read_digits,
    rotated_digits,
)

__all__ = [
    "BLOOD",
    "DIGITS",
    "draw_cells",
    "draw_chairs",
    "draw_letters",
    "image_names",
    "image_task",
    "network_input",
    "read_blood",
    "read_digits",
    "rotated_digits",
    "settled",
    "settled_source",
    "settled_task",
]
