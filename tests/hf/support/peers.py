"""transformers' own processors for the same configurations, and how far apart two results are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from numpy.typing import NDArray
from transformers.image_utils import load_image
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
from transformers.models.idefics.image_processing_pil_idefics import IdeficsImageProcessorPil
from transformers.models.idefics2.image_processing_pil_idefics2 import Idefics2ImageProcessorPil
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

EXAMPLES = Path(__file__).resolve().parents[3] / "client" / "python" / "examples" / "processors"

_CLASSES: dict[str, Any] = {
    "CLIP": CLIPImageProcessorPil,
    "GotOcr2": GotOcr2ImageProcessorPil,
    "Idefics": IdeficsImageProcessorPil,
    "Idefics2": Idefics2ImageProcessorPil,
    "LlavaNext": LlavaNextImageProcessorPil,
    "Qwen2VL": Qwen2VLImageProcessorPil,
    "Siglip": SiglipImageProcessorPil,
    "ViT": ViTImageProcessorPil,
}


def example(name: str) -> dict[str, Any]:
    """The example configuration of that name."""
    content: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    return content


def theirs(config: Mapping[str, Any], paths: Sequence[Any], backend: str = "pil") -> dict[str, NDArray[Any]]:
    """What transformers' processor makes of the files; ``backend`` ``torchvision`` is what AutoImageProcessor takes by default."""
    values = {key: value for key, value in config.items() if key != "aspect_ratio_setting"}
    kind = values.pop("image_processor_type", None) or values.pop("feature_extractor_type")
    name = re.sub("(ImageProcessor|FeatureExtractor)(Fast)?$", "", kind)
    processor = (_CLASSES[name] if backend == "pil" else getattr(transformers, f"{name}ImageProcessor"))(**values)
    nested = isinstance(paths[0], list)
    images = [[load_image(str(path)) for path in row] if nested else load_image(str(row)) for row in paths]
    made = processor(images, return_tensors="np" if backend == "pil" else "pt")
    if not isinstance(made, Mapping):  # Idefics returns the pixels alone
        made = made if hasattr(made, "keys") else {"pixel_values": made}
    return {key: np.asarray(made[key]) for key in made.keys()}  # noqa: SIM118 (a BatchFeature)


def made_by(processor: Any, paths: Sequence[Path]) -> dict[str, Any]:
    """What one of transformers' processors makes of files, as NumPy's arrays, and lists where it has those."""
    images = [load_image(str(path)) for path in paths]
    made = processor(images, return_tensors="np" if type(processor).__name__.endswith("Pil") else "pt")
    made = made if hasattr(made, "keys") else {"pixel_values": made}  # Idefics gives the pixels alone
    return {key: made[key] if isinstance(made[key], list) else np.asarray(made[key]) for key in made.keys()}  # noqa: SIM118


@dataclass(frozen=True)
class Difference:
    """Between two arrays of pixel values, in units of the normalised pixels."""

    largest: float
    mean: float


def difference(got: NDArray[Any], wanted: NDArray[Any]) -> Difference:
    """REQUIRES: the same shape."""
    apart = np.abs(np.asarray(got, np.float64) - np.asarray(wanted, np.float64))
    return Difference(float(apart.max()), float(apart.mean()))
