"""Hugging Face's image processors, with the host's daemon doing the work.

    >>> processor = millrace.hf.from_pretrained("clip-vit-base-patch32")  # in the place of AutoImageProcessor.from_pretrained
    >>> processor([jpeg_bytes, "/data/cat.jpg", pil_image], return_tensors="pt")["pixel_values"].shape
    torch.Size([3, 3, 224, 224])

What comes back is what the processor of the same name in ``transformers`` (its "slow" one, ``backend="pil"``) makes of the same images,
within the tolerance that doc/hugging_face.md states. ``ImageProcessor.from_config`` is the same without ``transformers``, which this
module imports only where ``from_pretrained`` finds it installed.
"""

from millrace._public import found_at as _found_at
from millrace.hf._plans.features import Features
from millrace.hf.pretrained import from_pretrained
from millrace.hf.processor import ImageProcessor

__all__ = ["Features", "ImageProcessor", "from_pretrained"]
_found_at(__name__, Features)
