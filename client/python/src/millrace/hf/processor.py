"""The processor itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple

import numpy as np

from millrace._core.batch import Batch
from millrace._core.session import PATIENCE
from millrace._recipe.dtype import AnyDType, dtype_name
from millrace.client import Client
from millrace.errors import Error, InvalidRequest, Unsupported
from millrace.hf._families.config import load
from millrace.hf._inputs.inputs import Reading, given
from millrace.hf._plans.elements import as_torch, shown
from millrace.hf._plans.features import Features
from millrace.hf._plans.plans import Plan
from millrace.hf.aside import Abandonment, Aside
from millrace.hf.calls import Calls
from millrace.hf.wording import in_its_words
from millrace.hf.workshop import Workshop
from millrace.recipe import DType, Priority, Recipe
from millrace.samples import Sample, Source


class Way(NamedTuple):
    """How a call is answered, whatever its plan is. As the parameters of ``ImageProcessor.__call__``."""

    copy: bool = False
    priority: Priority = "normal"
    timeout: float | None = PATIENCE
    abandonment: Abandonment | None = None


class ImageProcessor:
    """A model's image processor. Made by ``from_config``; thread-safe; a context manager.

    Threads call it at the same time: ``slots`` calls are under way at once, and who comes later waits, in order. From asyncio:
    ``await processor.acall(images)``.

    Supported are 77 classes of transformers 5.23, CLIP, SigLIP, Qwen-VL, InternVL, LLaVA and DETR among them; see doc/processors.md.

    It needs no ``transformers``; ``millrace.hf.from_pretrained`` makes one that takes the place of transformers' own. Pickled or copied it
    is a processor like this one, with a session of its own.
    """

    def __init__(self, calls: Calls, workshop: Workshop) -> None:
        self._calls = calls
        self._workshop = workshop
        self._aside = Aside(workshop.slots)

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
        calls = Calls(source, {**content, **overrides}, None if dtype is None else dtype_name(dtype))
        return ImageProcessor(calls, Workshop(client, slots, slot_bytes, name))

    @property
    def recipe(self) -> Recipe:
        """What the daemon is asked for, for use in a session of one's own. Tiles, thumbnails and padding are the processor's."""
        return self._plan.recipe

    def __call__(
        self,
        images: Any,
        *,
        return_tensors: Literal["np", "pt"] | None = "np",
        copy: bool = False,
        priority: Priority = "normal",
        timeout: float | None = PATIENCE,
        **overrides: Any,
    ) -> Features:
        """The model's inputs for ``images``.

        Args:
            images: one image or a list of them, Idefics2 also a list of lists. Encoded: a file's bytes, a path beneath one of the
                daemon's roots, a file open for reading, a data URL. As pixels, which are not encoded for the way: a PIL image of any
                mode, a NumPy array or a PyTorch tensor of whole numbers from 0 to 255, [height, width, channels] or [channels, height,
                width]; of four dimensions it is a list of images. Encoded ones are turned as EXIF says, pixels are not.
            return_tensors: ``"np"`` or None for NumPy, ``"pt"`` for PyTorch.
            copy: True: arrays of the caller's own; False: views of shared memory where possible, which hold a slot as long as they live.
                What would hold the last one is a copy, so that calls always go on. Both may be written to.
            priority: ``high`` for interactive serving.
            timeout: seconds, waiting for other calls included; None: two minutes.
            overrides: keys of the configuration that are otherwise for this call, as transformers' processors take them: ``size``,
                ``do_resize``, ``resample``, ``image_mean``, ``max_pixels``, ...; None switches a flag off, as there. Beside these
                ``do_convert_rgb`` and ``input_data_format``, which are about pixels only, and ``device``, with ``"pt"``.

        Returns:
            ``pixel_values``, and what the processor of this model gives beside it: ``image_grid_thw``, ``num_patches``,
            ``pixel_attention_mask``, ``image_sizes`` (int64).

        Raises:
            SampleFailed: an image cannot be read or decoded, or does not suit the processor; ``sample_errors`` says which and why.
            InvalidRequest: an image is of no kind that is known, or there are too many of them; a value that makes no sense.
            ResourceExhausted: too large for ``slot_bytes``, or for the daemon's budget.
            DeadlineExceeded: not within ``timeout``.
            DaemonUnavailable: it does not run, does not answer within ``timeout``, or went away; a later call connects anew.
            Unsupported: an override that is not known or not supported: names it. bfloat16 for NumPy, and ``ml_dtypes`` is not installed.
        """
        return self._answer(images, return_tensors, Way(copy, priority, timeout), overrides)

    async def acall(self, images: Any, *, return_tensors: Literal["np", "pt"] | None = "np", **options: Any) -> Features:
        """The same for asyncio, with the options of ``__call__``. Cancelled, the call ends in the daemon, too, and its slot is free again.

        Files are read, and pixels copied, in a thread of the processor's; there are ``slots`` of them.
        """
        way, overrides = way_of(options)

        def call(abandonment: Abandonment) -> Features:
            return self._answer(images, return_tensors, way._replace(abandonment=abandonment), overrides)

        return await self._aside.run(call)

    def _answer(self, images: Any, return_tensors: str | None, way: Way, overrides: Mapping[str, Any]) -> Features:
        if return_tensors not in (None, "np", "pt"):
            raise InvalidRequest(f"return_tensors: must be np or pt, is {return_tensors!r}")
        device = device_of(overrides, return_tensors)
        plan = self._calls.plan_with(overrides)
        reading = self._calls.reading(*self._calls.converts(overrides), overrides.get("input_data_format"))
        features = self._made(images, plan, reading, way)
        features = shown_as(features, plan.recipe.dtype, as_torch if return_tensors == "pt" else shown)
        return features if device is None else features.to(device)

    def _made(self, images: Any, plan: Plan, reading: Reading, way: Way) -> Features:
        """The features as NumPy's arrays, of bfloat16 the bits. Raises as ``__call__``."""
        several = given(images, plan, reading)
        patience = _seconds(way.timeout)
        try:
            return self._run(several.images, plan, way, time.monotonic() + patience)
        except Error as why:
            raise in_its_words(why, several.names, plan.image_of, self._workshop.slots, patience) from None

    def _run(self, images: Sequence[Any], plan: Plan, way: Way, deadline: float) -> Features:
        most, abandonment = plan.most_bytes, way.abandonment or Abandonment()

        def make(samples: Sequence[Sample | Source], recipe: Recipe) -> Batch:
            return self._workshop.make(samples, recipe, most, way.priority, deadline, abandonment)

        features = plan.run(images, make)
        if way.copy or self._workshop.full:
            return Features({key: array if isinstance(array, list) else np.array(array) for key, array in features.items()})
        return features

    @property
    def _plan(self) -> Plan:
        return self._calls.plan

    def close(self) -> None:
        """Ends the session, once the calls under way have ended; features that exist stay readable. Another call would open a new one."""
        self._aside.close()
        self._workshop.close()

    def __enter__(self) -> ImageProcessor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<millrace.hf.ImageProcessor {self._calls.kind}, {self._plan.recipe.dtype}, {self._workshop.slots} calls at once>"


def way_of(options: Mapping[str, Any]) -> tuple[Way, dict[str, Any]]:
    """Which of a call's options say how it is answered, and the others."""
    way = {key: value for key, value in options.items() if key in ("copy", "priority", "timeout")}
    return Way(**way), {key: value for key, value in options.items() if key not in way}


def device_of(overrides: Mapping[str, Any], return_tensors: Any) -> Any:
    """Where a call wants its tensors; None: where they are, in the CPU's memory.

    Raises:
        Unsupported: elsewhere, and they are not PyTorch's.
    """
    device = overrides.get("device")
    if device is None or str(device) == "cpu":
        return None
    if return_tensors != "pt":
        raise Unsupported(f'key device: {str(device)!r} is for tensors of PyTorch: ask for return_tensors="pt"')
    return device


def shown_as(features: Features, dtype: DType, turn: Callable[[Any, DType], Any]) -> Features:
    """The features as what the caller works with; ``dtype`` is that of ``pixel_values``."""
    return Features({key: turn(array, dtype if key == "pixel_values" else "float32") for key, array in features.items()})


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return PATIENCE
    if not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise InvalidRequest(f"timeout: must be seconds, at least 0, or None for two minutes; is {timeout!r}")
    return float(timeout)
