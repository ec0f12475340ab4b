"""What `mneme serve --engine local` imports and loads at its start, for tests/support/warm_start.py
to begin with.
"""

import importlib

from storage.indexes import load_kernels

for name in (
    "serve_app",
    "runtime.cli.ending",
    "runtime.serve.local",
    "runtime.serve.connection",
    "runtime.cluster.process",
    "runtime.inference.minilm.embedder",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.websockets.auto",
    "uvloop",
):
    importlib.import_module(name)
load_kernels()
