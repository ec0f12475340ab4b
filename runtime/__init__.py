"""What every feature needs, and no domain word; ARCHITECTURE.md walks through it from the bottom
up.
"""

import os

# A shard has its own threads. BLAS threads beside them only wait for each other: a scan of 6,000
# vectors takes 0.3 ms on one thread and 10 ms on two that share busy cores. It must be said before
# NumPy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# ONNX Runtime would note each session in ~/.cache/Microsoft and report it to its makers. It must be
# said before it loads, too.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
