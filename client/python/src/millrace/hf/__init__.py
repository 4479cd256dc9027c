"""Hugging Face's image processors, with the host's daemon doing the work.

    >>> processor = millrace.hf.ImageProcessor.from_config("preprocessor_config.json")
    >>> processor([jpeg_bytes, "/data/cat.jpg"])["pixel_values"].shape
    (2, 3, 224, 224)

What comes back is what the processor of the same name in ``transformers`` (its "slow" one, ``backend="pil"``) makes of the same files,
within the tolerance that the package's README states.
"""

from millrace.hf.features import Features
from millrace.hf.processor import ImageProcessor

__all__ = ["Features", "ImageProcessor"]
