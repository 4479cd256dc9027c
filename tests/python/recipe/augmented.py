"""For tests of steps of augmentation: pictures with gradients and noise, and what the second implementation of the draws makes of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import torch
from drawn_calls import applied
from draws import Key, drawn
from millrace import steps
from numpy.typing import NDArray
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.autoaugment import _apply_op

from pictures import png_of

SIZES = [millrace.Size(97, 64), millrace.Size(64, 97), millrace.Size(224, 224), millrace.Size(33, 18)]
FAR_IDS = [0, 1, 2**31, 2**40 + 5, 2**64 - 1]


def picture(size: millrace.Size, number: int = 0) -> NDArray[np.uint8]:
    """Something like a photograph: gradients, waves and noise."""
    y, x = np.mgrid[: size.height, : size.width]
    slopes = np.stack([x * 255 // size.width, y * 255 // size.height, (x + y) * 255 // (size.width + size.height)], -1)
    noise = np.random.default_rng(number).integers(0, 80, slopes.shape)
    return np.clip(slopes * 0.7 + noise + 20 * np.sin(x / 5)[..., None], 0, 255).astype(np.uint8)


def write(folder: Path, size: millrace.Size, number: int = 0) -> millrace.Path:
    path = folder / f"{size.width}x{size.height}-{number}.png"
    path.write_bytes(png_of(picture(size, number)))
    return millrace.Path(str(path))


def as_it_is(size: millrace.Size, *todo: steps.Step, **more: Any) -> millrace.Recipe:
    """The picture, and these steps."""
    return millrace.Recipe(**{"resize": millrace.ExactSize(size), "layout": "NHWC", "steps": todo, **more})


def without_steps(recipe: millrace.Recipe) -> millrace.Recipe:
    return dataclasses.replace(recipe, steps=(), erasing=None)


def stepped(pixels: NDArray[np.uint8], recipe: millrace.Recipe, key: Key) -> NDArray[np.uint8]:
    """Height x width x 3 after the recipe's steps."""
    height, width, _ = pixels.shape
    return np.asarray(applied(Image.fromarray(pixels), drawn(recipe.steps, (width, height), key)))


def mixed_as_tensors(pixels: NDArray[np.uint8], recipe: millrace.Recipe, key: Key) -> NDArray[np.uint8]:
    """What torchvision's AugMix makes of the picture: given the same draws, its operations are those on tensors."""
    height, width, _ = pixels.shape
    (call,) = drawn(recipe.steps, (width, height), key)
    of_image, weights, chains, _ = call.arguments
    image = torch.from_numpy(pixels).permute(2, 0, 1)
    total = torch.tensor(of_image, dtype=torch.float32) * image
    for weight, chain in zip(weights, chains, strict=True):
        changed = image
        for name, (magnitude, sampling, fill) in chain:
            changed = _apply_op(changed, name, magnitude, InterpolationMode(sampling), [float(level) for level in fill])
        total += torch.tensor(weight, dtype=torch.float32) * changed
    mixed: NDArray[np.uint8] = total.to(torch.uint8).permute(1, 2, 0).numpy()
    return mixed


def made(session: millrace.Session, samples: Any, recipe: millrace.Recipe, **options: Any) -> NDArray[Any]:
    """A copy of the batch's tensor; bfloat16 as the bits of each."""
    batch = session.get(session.submit(samples, recipe=recipe, **options))
    images = np.array(batch.images.bits())
    batch.release()
    return images


def share_that_differs(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> float:
    """Of the pixels."""
    return float((ours != theirs).any(-1).mean())
