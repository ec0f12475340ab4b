"""Whether the embedding model can run on a GPU of this machine."""

from __future__ import annotations

from runtime.extras import GPU
from runtime.inference.minilm.weights import ModelUnusable


def gpu_name() -> str:
    """What the GPU that PyTorch would use is called. Raises ModelUnusable where it finds none."""
    if GPU.is_missing:
        raise ModelUnusable(
            f"embedder.device is cuda, and PyTorch is not installed. Run {GPU.command}, or set it "
            "to cpu."
        )
    import torch  # pyright: ignore[reportMissingImports]

    if not torch.cuda.is_available():
        raise ModelUnusable(
            f"embedder.device is cuda, and PyTorch {torch.__version__} finds no GPU. See whether "
            "nvidia-smi lists one and whether PyTorch is a build for it, or set it to cpu."
        )
    return torch.cuda.get_device_name()
