"""Recipes of published training procedures, under their names.

    >>> loader = millrace.torch.Loader("/data/train", millrace.recipes.imagenet_v2(), batch_size=128, shuffle=True)

Each is what its source makes of one image before the model, as float32 and normalised; ``dtype=`` of a loader and ``dataclasses.replace``
make variants. What a source does to whole batches, or with the optimiser, is said under "left to the loop". Random parameters come from
the daemon, from the same distributions.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from millrace import steps
from millrace.errors import InvalidRequest
from millrace.recipe import ExactSize, Filter, Normalise, RandomResizedCrop, Recipe, ShorterSide, Size

__all__ = ["a1", "cifar", "clip", "deit", "deit3", "dinov2", "imagenet_v1", "imagenet_v2", "mae", "simclr"]

_CLIP = Normalise((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_CIFAR = Normalise((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
_IMAGENET_LEVELS = (124, 116, 104)  # ImageNet's mean colour


def _cropped(side: int, resampling: Filter, *, least: float = 0.08) -> Recipe:
    """A random part, resized, and a flip for every other image; float32, with ImageNet's mean and deviation taken out."""
    recipe = dataclasses.replace(Recipe.train(side), crop=RandomResizedCrop((least, 1.0)), filter=resampling)
    return recipe.normalised("float32")


def _centred(shorter_side: int, side: int, resampling: Filter) -> Recipe:
    return dataclasses.replace(Recipe.evaluate(shorter_side, side), filter=resampling).normalised("float32")


def imagenet_v1(*, training: bool = True) -> Recipe:
    """The classical recipe of ResNet on ImageNet, 224 pixels.

    Source: He et al., arXiv:1512.03385; torchvision, references/classification/presets.py, without options; weights IMAGENET1K_V1.
    To test: the shorter side to 256, the middle 224.
    """
    return _cropped(224, "bilinear") if training else _centred(256, 224, "bilinear")


def imagenet_v2(*, training: bool = True) -> Recipe:
    """Torchvision's newer recipe: TrivialAugmentWide and random erasing, trained at 176 pixels, tested at 224.

    Source: "How to Train State-Of-The-Art Models Using TorchVision's Latest Primitives", pytorch.org/blog; torchvision,
    references/classification/presets.py with --auto-augment ta_wide --random-erase 0.1 --train-crop-size 176; weights IMAGENET1K_V2.
    Left to the loop: mixup 0.2, cutmix 1.0, label smoothing 0.1, moving average of weights, each image four times an epoch (--ra-sampler).
    To test: the shorter side to 232, the middle 224.
    """
    if not training:
        return _centred(232, 224, "bilinear")
    augmented = (steps.TrivialAugmentWide(sampling="bilinear"),)
    return dataclasses.replace(_cropped(176, "bilinear"), steps=augmented, erasing=steps.Erasing(0.1))


def a1(*, training: bool = True) -> Recipe:
    """ResNet strikes back, procedure A1: timm's rand-m7-mstd0.5-inc1, 224 pixels.

    Source: Wightman et al., arXiv:2110.00476; timm, timm/data/transforms_factory.py. timm's training script draws bilinear or bicubic for
    each image unless told otherwise; here it is bicubic. Left to the loop: mixup 0.2, cutmix 1.0, repeated augmentation, binary
    cross-entropy. To test: the shorter side to 235 (crop ratio 0.95), the middle 224, bicubic.
    """
    if not training:
        return _centred(235, 224, "bicubic")
    augmented = steps.TimmRandAugment(magnitude=7.0, sampling="bicubic", fill=_IMAGENET_LEVELS)
    return dataclasses.replace(_cropped(224, "bicubic"), steps=(augmented,))


def deit(side: int = 224) -> Recipe:
    """DeiT's training, which MAE's and BEiT's fine-tuning share: timm's rand-m9-mstd0.5-inc1, random erasing of pixels 0.25.

    Source: Touvron et al., arXiv:2012.12877; github.com/facebookresearch/deit, datasets.py with main.py's defaults. Left to the loop: mixup
    0.8, cutmix 1.0, label smoothing 0.1, repeated augmentation.
    """
    augmented = steps.TimmRandAugment(sampling="bicubic", fill=_IMAGENET_LEVELS)
    erasing = steps.Erasing(0.25, (0.02, 1 / 3), (0.3, 3.33333333333), "pixel")
    return dataclasses.replace(_cropped(side, "bicubic"), steps=(augmented,), erasing=erasing)


def deit3(side: int = 224) -> Recipe:
    """DeiT III's training: 3-Augment (greyscale, solarisation or Pillow's blur, one of them), then colour jitter 0.3.

    Source: Touvron et al., arXiv:2204.07118; github.com/facebookresearch/deit, augment.py (--ThreeAugment, without --src). Left to the
    loop: mixup 0.8, cutmix 1.0, repeated augmentation.
    """
    three = steps.OneOf((steps.Solarize(128.0), steps.Grayscale(), steps.PillowBlur((0.1, 2.0))))
    return dataclasses.replace(_cropped(side, "bicubic"), steps=(three, steps.ColorJitter(0.3, 0.3, 0.3)))


def mae(side: int = 224) -> Recipe:
    """Masked autoencoders' pre-training: a random part of at least a fifth of the area, bicubic, and a flip.

    Source: He et al., arXiv:2111.06377; github.com/facebookresearch/mae, main_pretrain.py. Left to the model: the masking. For fine-tuning
    see ``deit``.
    """
    return _cropped(side, "bicubic", least=0.2)


def dinov2(view: Literal[1, 2] = 1, side: int = 224) -> Recipe:
    """One global view of DINOv2's pre-training; the two differ in blur and solarisation. Give the views' loaders different seeds.

    Source: Oquab et al., arXiv:2304.07193; github.com/facebookresearch/dinov2, dinov2/data/augmentations.py, as that code runs: its
    GaussianBlur(p) hands RandomApply 1 - p, so view 1 is never blurred and view 2 nine times in ten; DINO's paper says the opposite. Left
    to the loop: local views (another loader with ``side=96`` and a smaller ``crop``), masks of patches.

    Raises:
        InvalidRequest: there is no such view.
    """
    if view not in (1, 2):
        raise InvalidRequest(f"recipes.dinov2: view must be 1 or 2, is {view!r}")
    jitter = (steps.ColorJitter(0.4, 0.4, 0.2, 0.1, probability=0.8), steps.Grayscale(probability=0.2))
    blur = steps.GaussianBlur(9, (0.1, 2.0), probability=0.9)
    extra = () if view == 1 else (blur, steps.Solarize(128.0, probability=0.2))
    return dataclasses.replace(_cropped(side, "bicubic", least=0.32), steps=jitter + extra)


def simclr(side: int = 224, strength: float = 1.0) -> Recipe:
    """One view of SimCLR's pre-training: colour jitter, greyscale, blur; values in [0, 1]. Give the views' loaders different seeds.

    Source: Chen et al., arXiv:2002.05709, appendix A; github.com/google-research/simclr, data_util.py, with Pillow's resampling and
    torchvision's operations in the place of TensorFlow's.

    Args:
        side: of the image, pixels; the blur's kernel is a tenth of it.
        strength: of the colour jitter; 0.5 for CIFAR-10, for which the paper leaves out the blur (``steps[:-1]``).
    """
    jitter = steps.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength, probability=0.8)
    blur = steps.GaussianBlur(side // 10 // 2 * 2 + 1, (0.1, 2.0), probability=0.5)
    views = (jitter, steps.Grayscale(probability=0.2), blur)
    return dataclasses.replace(_cropped(side, "bicubic"), steps=views, normalise=None)


def clip(side: int = 224) -> Recipe:
    """What CLIP's image encoders take, in training and afterwards: the shorter side to ``side``, bicubic, and the middle.

    Source: Radford et al., arXiv:2103.00020; github.com/openai/CLIP, clip/clip.py. For training the paper takes a random square of the
    resized image instead of the middle.
    """
    recipe = Recipe(resize=ShorterSide(side), filter="bicubic", centre_crop=Size(side, side))
    return recipe.normalised("float32", by=_CLIP)


def cifar(*, training: bool = True) -> Recipe:
    """The classical recipe of CIFAR-10: 4 black pixels around, a random crop of 32, a flip.

    Source: He et al., arXiv:1512.03385, section 4.2; github.com/kuangliu/pytorch-cifar, main.py, whose mean and deviation these are. Images
    are files of 32 x 32 pixels; others are resized to that.
    """
    size = Size(32, 32)
    recipe = Recipe(resize=ExactSize(size)).normalised("float32", by=_CIFAR)
    moved = (steps.Shift(4), steps.HorizontalFlip(probability=0.5))
    return dataclasses.replace(recipe, steps=moved) if training else recipe
