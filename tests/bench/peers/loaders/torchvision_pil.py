"""torchvision on PIL images behind PyTorch's DataLoader: what ``ImageFolder`` gives who changes nothing."""

from __future__ import annotations

from typing import Any

from PIL import Image
from torchvision.transforms.v2 import functional

from loaders import torchvision


class Files(torchvision.Files):
    def decode(self, path: str) -> Any:
        with open(path, "rb") as file:
            return Image.open(file).convert("RGB")

    def tensor(self, picture: Any) -> Any:
        return functional.pil_to_tensor(picture)


class Loader(torchvision.Loader):
    dataset = Files
    tuned = "as torchvision, on PIL images"
