"""torchvision's transforms that no recipe says: why, and what to do instead."""

from __future__ import annotations

_BATCHES = (
    "it works on a batch and its labels: millrace.torch.Mixed(loader, [MixUp(), CutMix()], classes) does, the same again after a resume"
)
_BOXES = "it is about boxes, masks or key points, which the daemon does not know"
_AFTER = "apply it to the images that the loader yields"

REFUSED: dict[str, str] = {
    "ClampBoundingBoxes": _BOXES,
    "ClampKeyPoints": _BOXES,
    "ConvertBoundingBoxFormat": _BOXES,
    "CutMix": _BATCHES,
    "ElasticTransform": f"it moves each pixel by its own random vector; {_AFTER}, on the GPU, or use RandomAffine or RandomPerspective",
    "GaussianNoise": f"it changes each value by its own random number; {_AFTER}: on a GPU it is one torch.randn_like()",
    "JPEG": "it compresses and decodes again; keep torchvision's loader",
    "Lambda": f"it is a Python function, which the daemon does not run; {_AFTER}",
    "LinearTransformation": f"it multiplies whole images by a matrix; {_AFTER}, as one matrix product of the batch",
    "MixUp": _BATCHES,
    "RandomChannelPermutation": f"it exchanges whole channels; {_AFTER} (images[:, torch.randperm(3)])",
    "RandomIoUCrop": _BOXES,
    "RandomPhotometricDistort": "it permutes channels and fixes the order of what it does; use ColorJitter, which draws the order",
    "RandomZoomOut": (
        "it lays an image on a canvas of a random size; use ScaleJitter and RandomCrop(size, pad_if_needed=True), or RandomAffine(scale=)"
    ),
    "SanitizeBoundingBoxes": _BOXES,
    "SanitizeKeyPoints": _BOXES,
    "SetClampingMode": _BOXES,
    "ToPILImage": "batches are tensors; leave it out, or apply it to the images that the loader yields",
    "Transform": "it is the base of the others",
    "UniformTemporalSubsample": "it is about videos, which the daemon does not read",
}
