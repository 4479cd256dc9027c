"""A processor that transformers takes for its own. Imports ``transformers``; imported when somebody asks for one.

It is of a subclass, made here, of transformers' class for that model: its attributes, its keyword arguments with their defaults and
their validation, and everything that a model's ``Processor`` asks it for, are transformers' own. What replaces them is the way from
images to arrays: ``_preprocess_image_like_inputs``, which gets the images and all settings of the call.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from millrace.errors import Unsupported
from millrace.hf._families.config import Beside
from millrace.hf._inputs.inputs import encoded, is_encoded, is_row
from millrace.hf._plans.elements import as_torch, shown
from millrace.hf._plans.plans import Plan
from millrace.hf._plans.unstacked import unstacked
from millrace.hf.aside import Abandonment
from millrace.hf.calls import ANSWERING
from millrace.hf.processor import ImageProcessor, Way, device_of, shown_as, way_of
from millrace.recipe import Recipe

try:
    from transformers.image_processing_backends import PilBackend
    from transformers.image_processing_base import BatchFeature
    from transformers.image_processing_utils import BaseImageProcessor
    from transformers.models.auto.image_processing_auto import get_image_processor_class_from_name

    from millrace.hf._inputs.lazy_image import LazyImage
except ImportError as why:
    raise Unsupported(
        f"from_pretrained: the installed transformers gives no base for the processor ({why}): it needs transformers 5.23 and Pillow; "
        "millrace.hf.ImageProcessor.from_config needs neither"
    ) from why

_OLD_NAMES = {"Qwen2_5_VL": "Qwen2VL"}  # of classes that transformers has no more
_MOST_SETTINGS = 128  # kept; those of others are found anew at each call
_FOLLOWED = {"image_size"}  # what transformers' own classes keep, and do not look at in a call: `size` says it


class _Memory:
    """transformers' settings of calls, by their arguments, as long as the processor's attributes are these."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = copy.deepcopy(attributes)
        self.settings: dict[str, dict[str, Any]] = {}


@dataclass(eq=False)
class _Own:
    """What a processor has beside its attributes. A copy of the processor shares it, and with it the session.

    Attributes:
        engine: does the work.
        kind: the configuration's name for the processor.
        usual: transformers' settings of a call that overrides nothing, where no attribute was changed.
        background: the colour of padding that its class has worked out; None: it is of another kind.
        memory: replaced as a whole, so that a thread that has it may use it.
    """

    engine: ImageProcessor
    kind: str
    usual: dict[str, Any] = field(default_factory=dict)
    background: Any = None
    memory: _Memory | None = None

    def __deepcopy__(self, memo: Any) -> _Own:
        return self


class _Asked:
    """A call's images with what transformers' signatures have no room for."""

    def __init__(self, images: Any, way: Way) -> None:
        self.images = images
        self.way = way


class _Settings(Exception):
    """Not an error: brings the settings of a call without images."""


class Remembering(BaseImageProcessor):  # type: ignore[misc]
    """Comes before transformers' base class and after the model's own: what that makes of a call's arguments, it makes once.

    That takes it 30 to 90 us a call, of which most is their validation.
    """

    _millrace: _Own

    def preprocess(self, images: Any, *others: Any, image_like_kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
        """As ``BaseImageProcessor.preprocess``."""
        if image_like_kwargs is not None:
            return super().preprocess(images, *others, image_like_kwargs=image_like_kwargs, **options)
        memory = self._millrace.memory
        if memory is None or not _equal(memory.attributes, self.__dict__):
            memory = self._millrace.memory = _Memory(self.__dict__)
        asked = repr(options)
        settings = memory.settings.get(asked)
        if settings is None:
            settings = self._as_of(memory.attributes)._settings(options)
            if len(memory.settings) < _MOST_SETTINGS:
                memory.settings[asked] = settings
        return self._preprocess_image_like_inputs(images, *others, **settings)

    def _as_of(self, attributes: dict[str, Any]) -> Remembering:
        """A processor with these attributes, which no other thread changes."""
        one: Remembering = object.__new__(type(self))
        one.__dict__.update(attributes)
        return one

    def _settings(self, options: dict[str, Any]) -> dict[str, Any]:
        try:
            super().preprocess(_Settings, **options)
        except _Settings as settings:
            found: dict[str, Any] = settings.args[0]
            return found
        raise AssertionError("transformers has not asked for anything")


class OnDaemon:
    """The part of the subclass that is ours."""

    _millrace: _Own

    def __init__(self, **config: Any) -> None:
        kind = config.get("image_processor_type") or type(self)._kind  # type: ignore[attr-defined]
        engine = config.pop("_engine", None) or ImageProcessor.from_config({**config, "image_processor_type": kind})
        super().__init__(**{key: value for key, value in config.items() if key != "image_processor_type"})
        if not hasattr(self, "_valid_kwargs_names"):
            raise Unsupported(
                f"{kind}: transformers' own class for it is of an older kind, which cannot be followed; use ImageProcessor.from_config"
            )
        self._millrace = _Own(engine, kind, background=self.__dict__.get("background_color"))
        self._millrace.usual = _of_pixels(self._settings({}))  # type: ignore[attr-defined]

    def preprocess(self, images: Any, *others: Any, **options: Any) -> Any:
        """As transformers' own, and as ``ImageProcessor`` for ``images``, ``copy``, ``priority``, ``timeout`` and errors."""
        return self._answer(images, None, *others, **options)

    async def acall(self, images: Any, *others: Any, **options: Any) -> Any:
        """The same for asyncio, as ``ImageProcessor.acall``."""
        return await self._millrace.engine._aside.run(lambda abandonment: self._answer(images, abandonment, *others, **options))

    def _answer(self, images: Any, abandonment: Abandonment | None, *others: Any, **options: Any) -> Any:
        way, settings = way_of(options)
        if settings.get("transform") is not None:
            raise Unsupported("this call: key transform: the daemon runs no functions of the caller's; apply it to the images before")
        return super().preprocess(_Asked(images, way._replace(abandonment=abandonment)), *others, **settings)  # type: ignore[misc]

    def fetch_images(self, image_url_or_urls: Any) -> Any:
        """Images as transformers' processors pass them on: PIL's, and not decoded yet where they were encoded. Raises as a call."""
        return _fetched(image_url_or_urls, "")

    def _preprocess_image_like_inputs(self, images: Any, *others: Any, **settings: Any) -> Any:
        if images is _Settings:
            raise _Settings(settings)
        if not all(other is None or _are_counts(other) for other in others):
            raise Unsupported("this call: maps, masks and annotations beside the images are not processed; call it with images only")
        engine, return_tensors = self._millrace.engine, settings.get("return_tensors")
        if return_tensors not in (None, "np", "pt"):
            raise Unsupported(f"key return_tensors: {str(return_tensors)!r} is not supported; ask for np or pt")
        device = device_of(settings, return_tensors)
        to_rgb = bool(settings.get("do_convert_rgb"))
        reading = engine._calls.reading(to_rgb, to_rgb, settings.get("input_data_format"))
        plan = self._plan_for(settings)
        made = engine._made(images.images, plan, reading, images.way)
        features = shown_as(made, plan.recipe.dtype, as_torch if return_tensors == "pt" else shown)
        answer = BatchFeature(unstacked(plan, features) if return_tensors is None else dict(features))
        return answer if device is None else answer.to(device)

    def _plan_for(self, settings: Mapping[str, Any]) -> Plan:
        pixels, background = _of_pixels(settings), self.__dict__.get("background_color")
        calls = self._millrace.engine._calls
        if _equal(pixels, self._millrace.usual) and background == self._millrace.background:
            return calls.plan
        known = type(self).valid_kwargs.__annotations__  # type: ignore[attr-defined]
        config = {key: value for key, value in calls.config.items() if key not in known}
        given = {key: _plain(value) for key, value in pixels.items() if key not in _FOLLOWED and self._says(key, value)}
        usual = self._millrace.usual
        asked = frozenset(key for key, value in pixels.items() if not _equal(value, usual.get(key)))
        beside = Beside(calls.config, asked, getattr(self, "resample", None), background)
        return calls.plan_for({**config, **given, "image_processor_type": self._millrace.kind}, beside)

    def _says(self, key: str, value: Any) -> bool:
        """None is something that was said where the class has another value."""
        return value is not None or getattr(type(self), key, None) is not None

    @property
    def recipe(self) -> Recipe:
        """What the daemon is asked for where a call overrides nothing. As ``ImageProcessor.recipe``."""
        return self._plan_for(self._settings({})).recipe  # type: ignore[attr-defined]

    def to_dict(self) -> dict[str, Any]:
        """The configuration, as transformers' own class writes it."""
        told: dict[str, Any] = super().to_dict()  # type: ignore[misc]
        del told["_millrace"]
        told["image_processor_type"] = _with_ending(self._millrace.kind)
        return told

    def close(self) -> None:
        """As ``ImageProcessor.close``."""
        self._millrace.engine.close()

    def __enter__(self) -> OnDaemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._millrace.kind,), self.__dict__


def drop_in(engine: ImageProcessor) -> Any:
    """A processor for transformers that works with ``engine``.

    Raises:
        ValueError: transformers' class does not take the configuration, with its own text.
    """
    calls = engine._calls
    return class_of(calls.kind)(**{**calls.config, "_engine": engine})


@functools.cache
def class_of(kind: str) -> Any:
    """The subclass for a configuration's ``image_processor_type``: of the class that works with PIL, else of the one that there is."""
    name = re.sub("(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", kind)
    name = f"{_OLD_NAMES.get(name, name)}ImageProcessor"
    found = (get_image_processor_class_from_name(one) for one in (f"{name}Pil", name))
    base = next((one for one in found if one is not None and not getattr(one, "is_dummy", False)), PilBackend)
    doc = f"{name} of transformers, with the host's Millrace daemon doing the work; see millrace.hf.from_pretrained."
    return type(f"Millrace{name}", (OnDaemon, base, Remembering), {"_kind": kind, "__doc__": doc, "__module__": __name__})


def _again(kind: str) -> Any:
    """For pickle: one without attributes."""
    of = class_of(kind)
    return of.__new__(of)


def _fetched(images: Any, place: str) -> Any:
    if is_row(images):
        return [_fetched(one, f"{place}[{i}]") for i, one in enumerate(images)]
    return LazyImage(encoded(images, f"images{place}" if place else "the image")) if is_encoded(images) else images


def _of_pixels(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in ANSWERING}


def _are_counts(other: Any) -> bool:
    """LLaVA-OneVision's class passes on how many images each row has, which the plan sees for itself."""
    return isinstance(other, list) and all(isinstance(count, int) for count in other)


def _plain(value: Any) -> Any:
    """A SizeDict is no mapping, an array no list."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return dict(value) if hasattr(value, "shortest_edge") and not isinstance(value, Mapping) else value


def _equal(one: Any, other: Any) -> bool:
    """Arrays among the values have no truth value: then they are not."""
    try:
        return bool(one == other)
    except ValueError:
        return False


def _with_ending(kind: str) -> str:
    """The name as transformers 5 writes it: it had classes called FeatureExtractor."""
    return re.sub("FeatureExtractor$", "ImageProcessor", kind).removesuffix("Pil")
