"""`python -m modeling_dsa` is the command `dsa`."""

import sys

from modeling_dsa.cli.main import main

sys.exit(main())
