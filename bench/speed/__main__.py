"""Run the benchmarks of speed: ``python -m ronda.bench.speed CASE --jobs 1024,16384``."""

import sys

from ronda.bench.speed.cases import main

sys.exit(main())
