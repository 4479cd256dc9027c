"""Recipes of published training procedures, under their names.

    >>> loader = millrace.torch.Loader("/data/train", millrace.recipes.imagenet_v2(), batch_size=128, shuffle=True)

Each is what its source makes of one image before the model, as float32 and normalised (``simclr``, ``letterbox`` and
``large_scale_jitter``: values in [0, 1]); ``dtype=`` of a loader and ``dataclasses.replace`` make variants. Where that is several images,
the recipe has views (``Recipe.views``), and a loader yields a list of tensors. What a source does to whole batches, or with the optimiser,
is said under "left to the loop". Random parameters come from the daemon, from the same distributions.
"""

from __future__ import annotations

import dataclasses

from millrace import steps
from millrace.errors import InvalidRequest
from millrace.recipe import (
    ExactSize,
    Filter,
    LongerSide,
    Normalise,
    Pad,
    RandomResizedCrop,
    RandomShorterSide,
    Recipe,
    ScaleJitter,
    ShorterSide,
    Size,
)

__all__ = [
    "a1",
    "byol",
    "cifar",
    "clip",
    "deit",
    "deit3",
    "detr",
    "dino",
    "dinov2",
    "imagenet_v1",
    "imagenet_v2",
    "large_scale_jitter",
    "letterbox",
    "mae",
    "moco_v3",
    "simclr",
    "swav",
]

_CLIP = Normalise((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_CIFAR = Normalise((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
_SWAV = Normalise((0.485, 0.456, 0.406), (0.228, 0.224, 0.225))
_DETR_MOST = 1333
_IMAGENET_LEVELS = (124, 116, 104)  # ImageNet's mean colour


_JITTER = (steps.ColorJitter(0.4, 0.4, 0.2, 0.1, probability=0.8), steps.Grayscale(probability=0.2))
"""BYOL's colours, which others took over."""


def _cropped(side: int, resampling: Filter, *todo: steps.Step, least: float = 0.08, most: float = 1.0) -> Recipe:
    """A random part, resized, a flip for every other image, these steps; float32, with ImageNet's mean and deviation taken out."""
    recipe = dataclasses.replace(Recipe.train(side), crop=RandomResizedCrop((least, most)), filter=resampling, steps=todo)
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


def simclr(side: int = 224, strength: float = 1.0, *, views: int = 2) -> Recipe:
    """SimCLR's pre-training: two views alike, of colour jitter, greyscale and blur; values in [0, 1].

    Source: Chen et al., arXiv:2002.05709, appendix A; github.com/google-research/simclr, data_util.py, with Pillow's resampling and
    torchvision's operations in the place of TensorFlow's.

    Args:
        side: of the images, pixels; the blur's kernel is a tenth of it.
        strength: of the colour jitter; 0.5 for CIFAR-10, for which the paper leaves out the blur (``steps[:-1]`` of one view).
        views: how many; of 1 the recipe has none, and makes one image.

    Raises:
        InvalidRequest: there is no view.
    """
    if views < 1:
        raise InvalidRequest(f"recipes.simclr: views must be at least 1, is {views!r}")
    jitter = steps.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength, probability=0.8)
    blur = steps.GaussianBlur(_kernel(side), (0.1, 2.0), probability=0.5)
    view = dataclasses.replace(_cropped(side, "bicubic", jitter, steps.Grayscale(probability=0.2), blur), normalise=None)
    return view if views == 1 else Recipe.of_views([view] * views)


def byol(side: int = 224) -> Recipe:
    """BYOL's pre-training: two views, of which the first is always blurred, and the second seldom, and solarised now and then.

    Source: Grill et al., arXiv:2006.07733, appendix B, table 6; github.com/google-deepmind/deepmind-research, byol/utils/augmentations.py,
    with Pillow's resampling and torchvision's operations in the place of JAX's. Left to the loop: the loss takes each view once as the
    online network's.

    Args:
        side: of the images, pixels; the blur's kernel is a tenth of it.
    """
    always = steps.GaussianBlur(_kernel(side), (0.1, 2.0))
    seldom = (dataclasses.replace(always, probability=0.1), steps.Solarize(128.0, probability=0.2))
    return Recipe.of_views(_cropped(side, "bicubic", *_JITTER, always), _cropped(side, "bicubic", *_JITTER, *seldom))


def moco_v3(side: int = 224, *, least: float = 0.08) -> Recipe:
    """MoCo v3's pre-training: BYOL's two views with Pillow's blur, resampled bilinearly.

    Source: Chen et al., arXiv:2104.02057; github.com/facebookresearch/moco-v3, main_moco.py. The flip, which comes last there, is the
    recipe's own and comes before the colours: the same pictures.

    Args:
        side: of the images, pixels.
        least: share of the area of a crop; 0.2 for ResNet-50 (CONFIG.md there).
    """
    always = steps.PillowBlur((0.1, 2.0))
    seldom = (dataclasses.replace(always, probability=0.1), steps.Solarize(128.0, probability=0.2))
    return Recipe.of_views(
        _cropped(side, "bilinear", *_JITTER, always, least=least), _cropped(side, "bilinear", *_JITTER, *seldom, least=least)
    )


def swav(side: int = 224, local_side: int = 96, local: int = 6) -> Recipe:
    """SwAV's pre-training: two large crops and six small ones, all alike but for the size and the share of the area.

    Source: Caron et al., arXiv:2006.09882; github.com/facebookresearch/swav, src/multicropdataset.py with the options of
    scripts/swav_800ep_pretrain.sh; the first deviation is 0.228, as there.

    Args:
        side: of the large crops, pixels.
        local_side: of the small ones.
        local: how many small ones.
    """
    jitter = steps.ColorJitter(0.8, 0.8, 0.8, 0.2, probability=0.8)
    todo = (jitter, steps.Grayscale(probability=0.2), steps.PillowBlur((0.1, 2.0), probability=0.5))
    large = _cropped(side, "bilinear", *todo, least=0.14)
    small = _cropped(local_side, "bilinear", *todo, least=0.05, most=0.14)
    return Recipe.of_views([large] * 2, [small] * local).normalised("float32", by=_SWAV)


def dino(side: int = 224, local_side: int = 96, local: int = 8) -> Recipe:
    """DINO's pre-training: two large crops, the first always blurred, the second seldom, and solarised now and then; eight small ones.

    Source: Caron et al., arXiv:2104.14294; github.com/facebookresearch/dino, main_dino.py with its defaults.

    Args:
        side: of the large crops, pixels.
        local_side: of the small ones.
        local: how many small ones; without them the authors recommend crops of at least 0.14 of the area.
    """
    blur = steps.PillowBlur((0.1, 2.0))
    seldom = (dataclasses.replace(blur, probability=0.1), steps.Solarize(128.0, probability=0.2))
    first = _cropped(side, "bicubic", *_JITTER, blur, least=0.4)
    second = _cropped(side, "bicubic", *_JITTER, *seldom, least=0.4)
    small = _cropped(local_side, "bicubic", *_JITTER, dataclasses.replace(blur, probability=0.5), least=0.05, most=0.4)
    return Recipe.of_views(first, second, [small] * local)


def dinov2(side: int = 224, local_side: int = 98, local: int = 8) -> Recipe:
    """DINOv2's pre-training: two large crops, which differ in blur and solarisation, and eight small ones.

    Source: Oquab et al., arXiv:2304.07193; github.com/facebookresearch/dinov2, dinov2/data/augmentations.py, as that code runs: its
    GaussianBlur(p) hands RandomApply 1 - p, so the first crop is never blurred and the second nine times in ten; DINO's paper says the
    opposite. Left to the loop: masks of patches.

    Args:
        side: of the large crops, pixels.
        local_side: of the small ones: 98 for patches of 14 (configs/train there), 96 for patches of 16 (the default settings).
        local: how many small ones.
    """
    blur = steps.GaussianBlur(9, (0.1, 2.0))
    seldom = (dataclasses.replace(blur, probability=0.9), steps.Solarize(128.0, probability=0.2))
    first = _cropped(side, "bicubic", *_JITTER, least=0.32)
    second = _cropped(side, "bicubic", *_JITTER, *seldom, least=0.32)
    small = _cropped(local_side, "bicubic", *_JITTER, dataclasses.replace(blur, probability=0.5), least=0.05, most=0.32)
    return Recipe.of_views(first, second, [small] * local)


def _kernel(side: int) -> int:
    """Of SimCLR's blur: a tenth of the image, odd."""
    return side // 10 // 2 * 2 + 1


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
    if not training:
        return recipe
    return dataclasses.replace(recipe, pad=Pad(4, 4, 4, 4), centre_crop=size, crop_place="random", flip_probability=0.5)


def letterbox(side: int = 640, *, fill: int = 114) -> Recipe:
    """What YOLO's detectors take: the longer side to ``side``, grey on both sides of the shorter one; values in [0, 1].

    Source: github.com/ultralytics/yolov5, utils/augmentations.py, letterbox() with auto=False, with Pillow's resampling in the place of
    OpenCV's; the shorter side is truncated, there it is rounded. ``Batch.filled`` and ``Batch.source_sizes`` turn boxes back into the
    file's pixels.

    Args:
        side: of the images, pixels.
        fill: the level of the grey.
    """
    size = Size(side, side)
    return Recipe(resize=LongerSide(side), pad=Pad(to=size, fill=fill), dtype="float32")


def detr(*, training: bool = True) -> Recipe:
    """DETR's sizes: the shorter side one of 480 to 800, the longer one at most 1,333; filled up to 1,333 x 1,333, right and below.

    Source: Carion et al., arXiv:2005.12872; github.com/facebookresearch/detr, datasets/coco.py. There it is filled up to the largest image
    of a batch, with 0 behind the normalisation; here with ImageNet's mean colour before it, which is within 0.01 of it. ``Batch.filled``
    says what is no padding, for the mask, and ``Batch.map_boxes`` where boxes are. Left out: the flip (``flip_probability`` flips what is
    filled up, too), and that every other image is cut. To test: the shorter side to 800.
    """
    resize = RandomShorterSide(tuple(range(480, 801, 32)), _DETR_MOST) if training else ShorterSide(800, _DETR_MOST)
    pad = Pad(to=Size(_DETR_MOST, _DETR_MOST), place="top_left", fill=_IMAGENET_LEVELS)
    return Recipe(resize=resize, pad=pad).normalised("float32")


def large_scale_jitter(side: int = 1024, scale: tuple[float, float] = (0.1, 2.0)) -> Recipe:
    """Large-scale jitter: a tenth to twice the size, then a random window, or filled up right and below; a flip; values in [0, 1].

    Source: Ghiasi et al., arXiv:2012.07177; torchvision, references/detection/presets.py with --data-augmentation lsj, where the window's
    two offsets are the same share of what is left, and the normalisation is the model's. The flip is of the whole, as there: what is
    filled up is then at the left; ``Batch.filled`` says where the image is, ``Batch.map_boxes`` where its boxes are.

    Args:
        side: of the images, pixels.
        scale: from what to what.
    """
    size = Size(side, side)
    pad = Pad(to=size, place="top_left", fill=(123, 117, 104))
    return Recipe(resize=ScaleJitter(size, scale), pad=pad, centre_crop=size, crop_place="random", flip_probability=0.5, dtype="float32")
