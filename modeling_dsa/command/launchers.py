"""What launchers of several processes tell each of them."""

import os
from dataclasses import dataclass

# torchrun, a step of SLURM, and three MPIs
_COUNTS = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")


def started_processes() -> int:
    """How many processes the launcher has started, as it tells each of them."""
    found = (os.environ.get(name, "1") for name in _COUNTS)
    return max(int(count) for count in found if count.isdecimal())


@dataclass(frozen=True)
class Process:
    """One of the processes that share a task.

    Attributes:
        rank: Its number, from 0.
        count: How many there are, on all machines.
    """

    rank: int = 0
    count: int = 1

    @classmethod
    def from_environment(cls) -> "Process":
        """This process, as torchrun and `accelerate launch` tell it in RANK and WORLD_SIZE; else the only one.

        Raises:
            ValueError: The variables make no sense.
        """
        rank, count = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
        if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
            raise ValueError(f"RANK={rank} and WORLD_SIZE={count} in the environment name no process: unset them.")
        if "RANK" not in os.environ and (started := started_processes()) > 1:
            raise ValueError(
                f"The launcher started {started} processes, and none is told its number: set RANK, from 0, and "
                "WORLD_SIZE for each, as torchrun and `accelerate launch` do."
            )
        return cls(int(rank), int(count))
