"""Steps of augmentation as the daemon's messages."""

from __future__ import annotations

from typing import Any, get_args

from millrace import steps
from millrace.errors import InvalidRequest

_SIMPLE = {
    steps.HorizontalFlip: 1,
    steps.VerticalFlip: 2,
    steps.Grayscale: 3,
    steps.Invert: 4,
    steps.AutoContrast: 5,
    steps.Equalize: 6,
}


_MOST_NESTED = 45  # Protocol Buffers read a hundred messages in each other; how many steps may be, the daemon says


def fill_steps(out: Any, of: tuple[steps.Step, ...], depth: int = 1) -> None:
    """Adds them to the repeated field ``out``.

    Raises:
        InvalidRequest: a step that is none, a value of the wrong type, more in each other than a message holds; names the step.
    """
    if depth > _MOST_NESTED:
        raise InvalidRequest(f"Recipe.steps: more than {_MOST_NESTED} are in each other, and no message holds that")
    for number, step in enumerate(of):
        name = type(step).__name__
        try:
            _fill_step(out.add(), step, depth)
        except InvalidRequest:
            raise
        except (TypeError, ValueError, KeyError) as why:
            what = f"is no step of millrace.steps: {step!r}" if isinstance(why, KeyError) else str(why)
            raise InvalidRequest(f"steps[{number}], {name}: {what}") from why


def _fill_step(message: Any, step: steps.Step, depth: int) -> None:
    message.probability = step.probability
    simple = _SIMPLE.get(type(step))
    if simple is not None:
        message.simple = simple
    elif isinstance(step, steps.Sequence):
        message.sequence.SetInParent()
        fill_steps(message.sequence.steps, step.steps, depth + 1)
    elif isinstance(step, steps.AnyOrder):
        message.any_order.SetInParent()
        fill_steps(message.any_order.steps, step.steps, depth + 1)
    elif isinstance(step, steps.OneOf):
        message.one_of.SetInParent()
        fill_steps(message.one_of.steps, step.steps, depth + 1)
        message.one_of.weights.extend(step.weights)
    else:
        _FILL[type(step)](message, step)


def fill_erasing(out: Any, of: steps.Erasing) -> None:
    out.probability = of.probability
    _interval(out.scale, of.scale)
    _interval(out.ratio, of.ratio)
    if of.most != 1:  # an older daemon knows no other
        out.most = _not_0("Erasing.most", of.most, 1)
    if isinstance(of.value, str):
        out.noise = 2 + get_args(steps.Noise).index(of.value)
    else:
        out.value.extend(of.value if isinstance(of.value, (tuple, list)) else [of.value])


def _interval(out: Any, of: steps.Interval) -> None:
    out.low, out.high = of


def _sampling(of: Any, step: Any) -> int:
    names = get_args(steps.Sampling)
    if of not in names:
        raise InvalidRequest(f"{type(step).__name__}.sampling: must be one of {', '.join(names)}; is {of!r}")
    return 1 + names.index(of)


def _around(out: Any, step: Any) -> None:
    out.sampling = _sampling(step.sampling, step)
    out.fill = bytes(step.fill)


def _posterize(out: Any, step: steps.Posterize) -> None:
    out.posterize = step.bits


def _solarize(out: Any, step: steps.Solarize) -> None:
    out.solarize = step.threshold


def _sharpness(out: Any, step: steps.Sharpness) -> None:
    _interval(out.sharpness, step.factor)


def _colour_jitter(out: Any, step: steps.ColorJitter) -> None:
    out.color_jitter.SetInParent()
    for name in ("brightness", "contrast", "saturation", "hue"):
        interval = getattr(step, name)
        if interval is not None:
            _interval(getattr(out.color_jitter, name), interval)
            getattr(out.color_jitter, name).SetInParent()


def _gaussian_blur(out: Any, step: steps.GaussianBlur) -> None:
    out.gaussian_blur.kernel_size = step.kernel_size
    _interval(out.gaussian_blur.sigma, step.sigma)


def _pillow_blur(out: Any, step: steps.PillowBlur) -> None:
    _interval(out.pillow_blur, step.radius)


def _rotation(out: Any, step: steps.Rotation) -> None:
    _interval(out.rotation.degrees, step.degrees)
    _around(out.rotation.around, step)


def _affine(out: Any, step: steps.Affine) -> None:
    affine = out.affine
    _interval(affine.degrees, step.degrees)
    affine.translate_x, affine.translate_y = step.translate
    _interval(affine.scale, step.scale)
    affine.scale.SetInParent()
    _interval(affine.shear_x, step.shear_x)
    _interval(affine.shear_y, step.shear_y)
    _around(affine.around, step)


def _shift(out: Any, step: steps.Shift) -> None:
    out.shift.SetInParent()
    out.shift.x, out.shift.y = step.x, step.y
    out.shift.fill = bytes(step.fill)


def _perspective(out: Any, step: steps.Perspective) -> None:
    out.perspective.distortion = step.distortion
    _around(out.perspective.around, step)


def _rand_augment(out: Any, step: steps.RandAugment) -> None:
    augment = out.rand_augment
    augment.operations = _not_0("RandAugment.operations", step.operations, 1)
    augment.magnitude = step.magnitude
    augment.bins = _not_0("RandAugment.bins", step.bins, 2)
    _around(augment.around, step)


def _trivial_augment_wide(out: Any, step: steps.TrivialAugmentWide) -> None:
    out.trivial_augment_wide.bins = _not_0("TrivialAugmentWide.bins", step.bins, 2)
    _around(out.trivial_augment_wide.around, step)


def _auto_augment(out: Any, step: steps.AutoAugment) -> None:
    names = get_args(steps.Policy)
    if step.policy not in names:
        raise InvalidRequest(f"AutoAugment.policy: must be one of {', '.join(names)}; is {step.policy!r}")
    out.auto_augment.policy = 1 + names.index(step.policy)
    _around(out.auto_augment.around, step)


def _timm_rand_augment(out: Any, step: steps.TimmRandAugment) -> None:
    augment = out.timm_rand_augment
    augment.operations = _not_0("TimmRandAugment.operations", step.operations, 1)
    augment.magnitude, augment.magnitude_std = step.magnitude, step.magnitude_std
    augment.probability = step.operation_probability
    augment.increasing = step.increasing
    augment.fill = bytes(step.fill)
    if step.sampling is not None:
        augment.sampling = _sampling(step.sampling, step)


def _aug_mix(out: Any, step: steps.AugMix) -> None:
    mix = out.aug_mix
    mix.severity = _not_0("AugMix.severity", step.severity, 1)
    mix.fewer = not step.all_operations
    _chains(mix, step)
    _around(mix.around, step)


def _timm_aug_mix(out: Any, step: steps.TimmAugMix) -> None:
    mix = out.timm_aug_mix
    mix.magnitude = step.magnitude
    if step.magnitude_std is not None:
        mix.magnitude_std = step.magnitude_std
    _chains(mix, step)
    mix.fill = bytes(step.fill)
    if step.sampling is not None:
        mix.sampling = _sampling(step.sampling, step)


def _chains(mix: Any, step: steps.AugMix | steps.TimmAugMix) -> None:
    name = type(step).__name__
    mix.width, mix.depth = _not_0(f"{name}.width", step.width, 1), step.depth
    mix.alpha = _not_0(f"{name}.alpha", step.alpha, 0.1)


def _not_0(name: str, value: Any, least: float) -> Any:
    """Where a message's 0 means the default."""
    if value == 0:
        raise InvalidRequest(f"{name}: must be at least {least}, is 0")
    return value


_FILL: dict[type, Any] = {
    steps.Posterize: _posterize,
    steps.Solarize: _solarize,
    steps.Sharpness: _sharpness,
    steps.ColorJitter: _colour_jitter,
    steps.GaussianBlur: _gaussian_blur,
    steps.PillowBlur: _pillow_blur,
    steps.Rotation: _rotation,
    steps.Affine: _affine,
    steps.Shift: _shift,
    steps.Perspective: _perspective,
    steps.RandAugment: _rand_augment,
    steps.TrivialAugmentWide: _trivial_augment_wide,
    steps.AutoAugment: _auto_augment,
    steps.TimmRandAugment: _timm_rand_augment,
    steps.AugMix: _aug_mix,
    steps.TimmAugMix: _timm_aug_mix,
}
