"""Settings for all tests."""

import torch

# The tests' tensors are tiny: a second thread costs more than it brings, and the machine has other work.
torch.set_num_threads(1)
