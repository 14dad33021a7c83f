"""Started by a launcher that asks for FSDP: run_nli.py on a CPU, where torch has FSDP and accelerate takes none."""

import sys
from typing import Any

from accelerate import PartialState
from accelerate.utils import DistributedType

from run_glue_style.run_nli import main
from run_glue_style.training.entry import run_script

make_state = PartialState.__init__


def as_on_gpus(self: PartialState, *arguments: Any, **options: Any) -> None:
    make_state(self, *arguments, **options)
    if self.distributed_type == DistributedType.MULTI_CPU:
        self.distributed_type = DistributedType.MULTI_GPU


PartialState.__init__ = as_on_gpus
sys.exit(run_script(main))
