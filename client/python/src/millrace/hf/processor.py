"""The processor itself."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import numpy as np

from millrace._dtype import AnyDType, dtype_name
from millrace.batch import Batch
from millrace.client import Client
from millrace.errors import Error, InvalidRequest
from millrace.hf.config import load
from millrace.hf.elements import as_torch, shown
from millrace.hf.families import plan_of
from millrace.hf.features import Features
from millrace.hf.plans import Plan
from millrace.hf.wording import check_images, in_its_words
from millrace.hf.workshop import Workshop
from millrace.recipe import Priority, Recipe
from millrace.samples import Path, Sample, Source
from millrace.session import PATIENCE


class ImageProcessor:
    """A model's image processor. Made by ``from_config``; thread-safe; a context manager.

    Threads call it at the same time: ``slots`` calls are under way at once, and who comes later waits, in order. From asyncio:
    ``await asyncio.to_thread(processor, images)``.

    Supported are CLIP, LLaVA-1.5, LLaVA-NeXT, ViT, SigLIP, which PaliGemma and Gemma 3n use, Idefics, Idefics2, Qwen2-VL, Qwen2.5-VL,
    Qwen3-VL and GOT-OCR2, which InternVL uses.
    """

    def __init__(self, plan: Plan, workshop: Workshop) -> None:
        self._plan = plan
        self._workshop = workshop

    @staticmethod
    def from_config(
        config: str | os.PathLike[str] | Mapping[str, Any],
        *,
        client: Client | None = None,
        dtype: AnyDType | None = None,
        slots: int = 4,
        slot_bytes: int | None = None,
        name: str = "image processor",
        **overrides: Any,
    ) -> ImageProcessor:
        """A processor as a preprocessor_config.json describes it.

        Args:
            config: that file, the folder that holds it (a downloaded model), or what it holds.
            client: None: connects to the host's daemon at the first call.
            dtype: of ``pixel_values``, by NumPy's, PyTorch's or JAX's name; None: float32, or uint8 for a configuration that neither
                rescales nor normalises.
            slots: calls under way at once. All but one of them may be kept by results that show shared memory.
            slot_bytes: room for one call's pixels and records; None: grows as calls need it.
            name: of its session, for the daemon's statistics.
            overrides: keys that replace the configuration's: InternVL's processor sets ``crop_to_patches=True``.

        Raises:
            Unsupported: a processor, a key or a value that is not supported; the message names it.
            InvalidRequest: a value that makes no sense; the message names its key.
            NotFound: there is no such file.
        """
        if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
            raise InvalidRequest(f"ImageProcessor.from_config: slots must be a whole number of at least 1, is {slots!r}")
        source, content = load(config)
        plan = plan_of(source, {**content, **overrides}, None if dtype is None else dtype_name(dtype))
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
        timeout: float | None = PATIENCE,
    ) -> Features:
        """The model's inputs for ``images``.

        Args:
            images: encoded images, or one: each a file's bytes or a path beneath one of the daemon's roots. Idefics2: also a list of lists.
            return_tensors: ``"np"`` for NumPy, ``"pt"`` for PyTorch.
            copy: True: arrays of the caller's own; False: views of shared memory where possible, which hold a slot as long as they live.
                What would hold the last one is a copy, so that calls always go on. Both may be written to.
            priority: ``high`` for interactive serving.
            timeout: seconds, waiting for other calls included; None: two minutes.

        Returns:
            ``pixel_values``, and what the processor of this model gives beside it: ``image_grid_thw``, ``num_patches``,
            ``pixel_attention_mask``, ``image_sizes`` (int64).

        Raises:
            SampleFailed: an image cannot be read or decoded, or does not suit the processor; ``sample_errors`` says which and why.
            InvalidRequest: an image is neither bytes nor a path, or there are too many of them.
            ResourceExhausted: too large for ``slot_bytes``, or for the daemon's budget.
            DeadlineExceeded: not within ``timeout``.
            DaemonUnavailable: it does not run, does not answer within ``timeout``, or went away; a later call connects anew.
            Unsupported: bfloat16 for NumPy, and ``ml_dtypes`` is not installed.
        """
        if return_tensors not in ("np", "pt"):
            raise InvalidRequest(f"return_tensors: must be np or pt, is {return_tensors!r}")
        listed = isinstance(images, (list, tuple)) and not isinstance(images, Path)  # which is a tuple, too
        several: list[Any] = list(images) if listed else [images]  # type: ignore[arg-type]
        flat = self._plan.flat(several)
        if not flat:
            raise InvalidRequest("images: there must be at least one")
        names = self._plan.names(several) if listed else ["the image"]
        check_images(flat, names)
        patience = _seconds(timeout)
        try:
            features = self._run(several, copy, priority, time.monotonic() + patience)
        except Error as why:
            raise in_its_words(why, names, self._plan.image_of, self._workshop.slots, patience) from None
        turn = as_torch if return_tensors == "pt" else shown
        pixels = turn(features.pop("pixel_values"), self._plan.recipe.dtype)
        return Features(pixel_values=pixels, **{key: turn(array, "float32") for key, array in features.items()})

    def _run(self, images: Sequence[Any], copy: bool, priority: Priority, deadline: float) -> Features:
        most = self._plan.most_bytes

        def make(samples: Sequence[Sample | Source], recipe: Recipe) -> Batch:
            return self._workshop.make(samples, recipe, most, priority, deadline)

        features = self._plan.run(images, make)
        if copy or self._workshop.full:
            return Features({key: np.array(array) for key, array in features.items()})
        return features

    def close(self) -> None:
        """Ends the session, once the calls under way have ended; features that exist stay readable. Another call would open a new one."""
        self._workshop.close()

    def __enter__(self) -> ImageProcessor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return PATIENCE
    if not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise InvalidRequest(f"timeout: must be seconds, at least 0, or None for two minutes; is {timeout!r}")
    return float(timeout)
