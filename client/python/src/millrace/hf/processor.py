"""The processor itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import numpy as np

from millrace.batch import Batch
from millrace.client import Client
from millrace.errors import InvalidRequest
from millrace.hf.config import load
from millrace.hf.elements import as_torch, shown
from millrace.hf.families import plan_of
from millrace.hf.features import Features
from millrace.hf.plans import Plan
from millrace.hf.workshop import Workshop
from millrace.recipe import DType, Priority, Recipe
from millrace.samples import Sample, Source
from millrace.session import PATIENCE


class ImageProcessor:
    """A model's image processor. Made by ``from_config``; thread-safe, calls take turns; a context manager.

    Supported are CLIP, LLaVA-1.5, LLaVA-NeXT, ViT, SigLIP, Idefics, Idefics2, Qwen2-VL, Qwen2.5-VL and GOT-OCR2, which InternVL uses.
    """

    def __init__(self, plan: Plan, workshop: Workshop) -> None:
        self._plan = plan
        self._workshop = workshop

    @staticmethod
    def from_config(
        config: str | os.PathLike[str] | Mapping[str, Any],
        *,
        client: Client | None = None,
        dtype: DType | None = None,
        slots: int = 3,
        slot_bytes: int | None = None,
        name: str = "image processor",
        **overrides: Any,
    ) -> ImageProcessor:
        """A processor as a preprocessor_config.json describes it.

        Args:
            config: that file, the folder that holds it (a downloaded model), or what it holds.
            client: None: connects to the host's daemon at the first call.
            dtype: of ``pixel_values``; None: float32, or uint8 for a configuration that neither rescales nor normalises.
            slots: results that may be held at once without a copy.
            slot_bytes: room for one call's pixels and 192 bytes an image; None: grows as calls need it.
            name: of its session, for the daemon's statistics.
            overrides: keys that replace the configuration's: InternVL's processor sets ``crop_to_patches=True``.

        Raises:
            Unsupported: a processor, a key or a value that is not supported; the message names it.
            InvalidRequest: a value that makes no sense; the message names its key.
            NotFound: there is no such file.
        """
        source, content = load(config)
        plan = plan_of(source, {**content, **overrides}, dtype)
        return ImageProcessor(plan, Workshop(client, slots, slot_bytes, name))

    @property
    def recipe(self) -> Recipe:
        """What the daemon is asked for, for use in a session of one's own. Tiles, thumbnails and padding are the processor's."""
        return self._plan.recipe

    def __call__(
        self,
        images: Sequence[Any] | Source,
        *,
        return_tensors: Literal["np", "pt"] = "np",
        copy: bool = False,
        priority: Priority = "normal",
        timeout: float = PATIENCE,
    ) -> Features:
        """The model's inputs for ``images``.

        Args:
            images: encoded images, or one: each a file's bytes or a path beneath one of the daemon's roots. Idefics2: also a list of lists.
            return_tensors: ``"np"`` for NumPy, ``"pt"`` for PyTorch.
            copy: True: arrays of the caller's own, writable; False: read-only views of shared memory where possible, which hold a slot as
                long as they live.
            priority: ``high`` for interactive serving.
            timeout: seconds.

        Returns:
            ``pixel_values``, and what the processor of this model gives beside it: ``image_grid_thw``, ``num_patches``,
            ``pixel_attention_mask``, ``image_sizes`` (int64).

        Raises:
            SampleFailed: an image cannot be read or decoded, or does not suit the processor; ``sample_errors`` says which and why.
            FailedPrecondition: earlier results hold all slots.
            ResourceExhausted: too large for ``slot_bytes``, or for the daemon's budget.
            Unsupported: bfloat16 for NumPy, and ``ml_dtypes`` is not installed.
        """
        if return_tensors not in ("np", "pt"):
            raise InvalidRequest(f"return_tensors: must be np or pt, is {return_tensors!r}")
        several = list(images) if isinstance(images, (list, tuple)) and type(images) in (list, tuple) else [images]
        if not self._plan.flat(several):
            raise InvalidRequest("images: there must be at least one")
        most = self._plan.most_bytes

        def make(samples: Sequence[Sample | Source], recipe: Recipe) -> Batch:
            return self._workshop.make(samples, recipe, most, priority, timeout)

        with self._workshop.turn():
            features = self._plan.run(several, make)
            if copy:  # within the turn: the next call finds the slot free
                features = Features({key: np.array(array) for key, array in features.items()})
        turn = as_torch if return_tensors == "pt" else shown
        pixels = turn(features.pop("pixel_values"), self._plan.recipe.dtype)
        return Features(pixel_values=pixels, **{key: turn(array, "float32") for key, array in features.items()})

    def close(self) -> None:
        """Ends the session; features that exist stay readable. Another call would open a new one."""
        with self._workshop.turn():
            self._workshop.close()

    def __enter__(self) -> ImageProcessor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
