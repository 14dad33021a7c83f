"""What launchers of several processes say of themselves."""

import os

# torchrun, a step of SLURM, and three MPIs
_COUNTS = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")


def started_processes() -> int:
    """How many processes the launcher has started, as it tells each of them."""
    found = (os.environ.get(name, "1") for name in _COUNTS)
    return max(int(count) for count in found if count.isdecimal())
