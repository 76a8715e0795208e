"""A loader of torch with a pin thread.

Torch starts that thread only if there is a GPU: here torch is told that there is one, and pinning takes as long as a load."""

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import pin_memory


def pinned(samples, workers, load):
    def pin(data, device=None):
        return load(data)

    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.set_device = lambda device: None
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available = lambda *_, **__: True
        torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")
        torch.accelerator.current_device_index = lambda: 0
        torch.accelerator.set_device_index = lambda index: None
    pin_memory.pin_memory = pin
    return DataLoader(samples, batch_size=1, num_workers=workers, pin_memory=True)
