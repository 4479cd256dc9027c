"""Steps of augmentation that make no sense are refused by name; a picture that is too small for one is an error of its own."""

from __future__ import annotations

import dataclasses
import gc
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest
from millrace import steps
from millrace._wire import messages as _messages
from millrace._wire import schema as _schema
from millrace._wire.messages import recipe_message
from millrace.steps import (
    Affine,
    AnyOrder,
    AugMix,
    AutoAugment,
    ColorJitter,
    Erasing,
    GaussianBlur,
    Invert,
    OneOf,
    Perspective,
    PillowBlur,
    Posterize,
    RandAugment,
    Rotation,
    Sequence,
    Sharpness,
    Solarize,
    TimmAugMix,
    TimmRandAugment,
    TrivialAugmentWide,
    VerticalFlip,
)

from pictures import SIZE, png, png_of

NAN, INF = math.nan, math.inf
BAD = [NAN, INF, -INF, 1e30, 1e300]


def nested(depth: int, innermost: Any = None) -> Any:
    step = innermost or Invert()
    for group in range(depth - 1):
        step = (Sequence, AnyOrder, OneOf)[group % 3]((step,))
    return step


def everywhere(name: str, make: Any) -> list[tuple[Any, str]]:
    return [(make(value), name) for value in BAD]


REFUSED: list[tuple[Any, str]] = [
    *everywhere(r"steps\[0\]\.probability", lambda bad: Invert(probability=bad)),
    (Invert(probability=-0.1), r"steps\[0\]\.probability: must be between 0 and 1, is -0.1"),
    (Sequence((Invert(),), probability=1.01), r"steps\[0\]\.probability: .*1\.01"),
    *((Posterize(bits), r"steps\[0\]\.posterize: must be between 1 and 8") for bits in (0, 9, 2**32 - 1)),
    *everywhere(r"steps\[0\]\.solarize", Solarize),
    *((Solarize(threshold), r"steps\[0\]\.solarize: must be between 0 and 256") for threshold in (-0.5, 256.5)),
    *everywhere(r"steps\[0\]\.sharpness\.low", Sharpness),
    *everywhere(r"steps\[0\]\.sharpness\.high", lambda bad: Sharpness((0, bad))),
    (Sharpness(-1), r"sharpness\.low: .* is -1"),
    (Sharpness((0, 1001)), r"sharpness\.high: .* is 1001"),
    (Sharpness((2, 1)), r"sharpness: low, 2, is over high, 1"),
    (ColorJitter(), r"color_jitter: changes nothing"),
    (ColorJitter(0, 0.0, None, 0), r"color_jitter: changes nothing"),
    *((ColorJitter(**{part: (-1, 1)}), rf"color_jitter\.{part}\.low") for part in ("brightness", "contrast", "saturation", "hue")),
    *((ColorJitter(**{part: (0, 2000)}), rf"color_jitter\.{part}\.high") for part in ("brightness", "contrast", "saturation", "hue")),
    *((ColorJitter(**{part: (0.4, 0.3)}), rf"color_jitter\.{part}: low") for part in ("brightness", "contrast", "saturation", "hue")),
    *everywhere(r"color_jitter\.hue\.low", lambda bad: ColorJitter(hue=(bad, bad))),
    (ColorJitter(hue=0.6), r"color_jitter\.hue\.low: must be between -0.5 and 0.5"),
    *((GaussianBlur(size), r"gaussian_blur\.kernel_size: must be") for size in (0, 4, 100, 101, 2**32 - 1)),
    *everywhere(r"gaussian_blur\.sigma\.low", lambda bad: GaussianBlur(3, bad)),
    *((GaussianBlur(3, sigma), r"gaussian_blur\.sigma\.low") for sigma in (0, -1, 101)),
    (GaussianBlur(3, (2, 1)), r"gaussian_blur\.sigma: low, 2, is over high, 1"),
    *everywhere(r"pillow_blur\.low", PillowBlur),
    *((PillowBlur(radius), r"pillow_blur\.low") for radius in (0, -1, 101)),
    *everywhere(r"rotation\.degrees\.low", Rotation),
    (Rotation((10, -10)), r"rotation\.degrees: low, 10, is over high, -10"),
    *((Affine(**{name: bad}), rf"affine\.{name}\.low") for name in ("degrees", "scale", "shear_x", "shear_y") for bad in BAD),
    *((Affine(translate=(bad, 0)), r"affine\.translate_x") for bad in (*BAD, -0.1, 1.1)),
    *((Affine(translate=(0, bad)), r"affine\.translate_y") for bad in (*BAD, -0.1, 1.1)),
    *((Affine(scale=scale), r"affine\.scale\.low") for scale in (0, -1, 1001)),
    (Affine(shear_x=90), r"affine\.shear_x\.low: must be between -89 and 89, is 90"),
    (Affine(shear_y=(-90, 0)), r"affine\.shear_y\.low: must be between -89 and 89, is -90"),
    *((Perspective(bad), r"perspective\.distortion: must be between 0 and 1") for bad in (*BAD, -0.1, 1.1)),
    *((RandAugment(operations), r"RandAugment\.operations|rand_augment\.operations") for operations in (0, 17, 2**32 - 1)),
    *((RandAugment(magnitude=magnitude), r"rand_augment\.magnitude: must be between 0 and 30") for magnitude in (31, 2**32 - 1)),
    *((RandAugment(magnitude=0, bins=bins), r"rand_augment\.bins") for bins in (1, 1001, 2**32 - 1)),
    *((TrivialAugmentWide(bins), r"trivial_augment_wide\.bins") for bins in (1, 1001, 2**32 - 1)),
    *((TimmRandAugment(operations), r"TimmRandAugment\.operations|timm_rand_augment\.operations") for operations in (0, 17)),
    *((TimmRandAugment(magnitude=bad), r"timm_rand_augment\.magnitude:") for bad in (*BAD, -1, 10.5)),
    *((TimmRandAugment(magnitude_std=bad), r"timm_rand_augment\.magnitude_std:") for bad in (*BAD, -1, 101)),
    *((TimmRandAugment(operation_probability=bad), r"timm_rand_augment\.probability:") for bad in (*BAD, -1, 1.5)),
    *((AugMix(severity), r"AugMix\.severity|aug_mix\.severity") for severity in (0, 11, 2**32 - 1)),
    *((AugMix(width=width), r"AugMix\.width|aug_mix\.width") for width in (0, 9, 2**32 - 1)),
    *((AugMix(depth=depth), r"aug_mix\.depth") for depth in (17, 2**32 - 1)),
    *((AugMix(alpha=bad), r"AugMix\.alpha|aug_mix\.alpha") for bad in (*BAD, 0, -1, 0.05, 101)),
    *((TimmAugMix(magnitude=bad), r"timm_aug_mix\.magnitude:") for bad in (*BAD, -1, 10.5)),
    *((TimmAugMix(magnitude_std=bad), r"timm_aug_mix\.magnitude_std:") for bad in (*BAD, -1, 101)),
    (AugMix(width=8, depth=7), r"66 operations a sample, at most 64"),
    *((group(()), rf"{name}: has no steps") for group, name in ((Sequence, "sequence"), (AnyOrder, "any_order"), (OneOf, "one_of"))),
    (OneOf((Invert(),), (1, 2)), r"one_of\.weights: must be as many as steps, 1, are 2"),
    (OneOf((Invert(), VerticalFlip()), (0, 0)), r"one_of\.weights: are all 0"),
    *((OneOf((Invert(), VerticalFlip()), (1, bad)), r"one_of\.weights\[1\]") for bad in (*BAD, -1)),
    (Sequence((Invert(), AnyOrder((Posterize(0),)))), r"steps\[0\]\.sequence\.steps\[1\]\.any_order\.steps\[0\]\.posterize"),
    (nested(9), r"at most 8"),
    (nested(45), r"at most 8"),
    (tuple(Invert() for _ in range(65)), r"at most 64"),
    (Sequence(tuple(Invert() for _ in range(64))), r"at most 64"),
    (tuple(RandAugment(16) for _ in range(5)), r"80 operations a sample, at most 64"),
    ((Sequence((RandAugment(16),) * 4), OneOf((Invert(), Invert()))), r"65 operations a sample, at most 64"),
]

NEVER_SENT: list[tuple[Any, str]] = [
    (Posterize(-1), "-1"),
    (Posterize(2**40), "1099511627776"),
    (Posterize(2.5), "float"),  # type: ignore[arg-type]
    (Solarize("half"), "half|str|must be real number"),  # type: ignore[arg-type]
    (Rotation(sampling="lanczos"), "Rotation.sampling: must be one of nearest, bilinear, bicubic"),  # type: ignore[arg-type]
    (RandAugment(sampling=""), "RandAugment.sampling: must be one of"),  # type: ignore[arg-type]
    (TimmRandAugment(sampling="random"), "TimmRandAugment.sampling: must be one of"),  # type: ignore[arg-type]
    (AugMix(sampling="box"), "AugMix.sampling: must be one of"),  # type: ignore[arg-type]
    (AugMix(depth=-1), "-1"),
    (AutoAugment("places"), "AutoAugment.policy: must be one of imagenet, cifar10, svhn"),  # type: ignore[arg-type]
]

FLOATS = {"dtype": "float32"}
REFUSED_ERASING: list[tuple[Erasing, dict[str, Any], str]] = [
    *((Erasing(bad), {}, r"erasing\.probability") for bad in (*BAD, -0.1, 1.1)),
    *((Erasing(scale=(bad, 1)), {}, r"erasing\.scale\.low") for bad in (*BAD, 0, -1)),
    (Erasing(scale=(0.1, 1.1)), {}, r"erasing\.scale\.high"),
    (Erasing(scale=(0.5, 0.1)), {}, r"erasing\.scale: low, 0.5, is over high, 0.1"),
    *((Erasing(ratio=(bad, 1)), {}, r"erasing\.ratio\.low") for bad in (*BAD, 0, -1)),
    (Erasing(ratio=(2, 1)), {}, r"erasing\.ratio: low, 2, is over high, 1"),
    *((Erasing(value=bad), {}, r"erasing\.value\[0\]") for bad in (*BAD, -1, 256)),
    *((Erasing(value=(0, 0, bad)), FLOATS, r"erasing\.value\[2\]") for bad in (NAN, INF, -INF, 1e300)),
    (Erasing(value=(1, 2)), {}, r"erasing\.value: must have 1 or 3 values, has 2"),  # type: ignore[arg-type]
    (Erasing(value=(1.0,) * 4000), FLOATS, r"erasing\.value: must have 1 or 3 values, has 4000"),  # type: ignore[arg-type]
    (Erasing(value="channel"), {}, r"erasing\.noise: .*uint8"),
    (Erasing(value="pixel"), {}, r"erasing\.noise: .*uint8"),
    (Erasing(), {"patches": millrace.Patches(millrace.Size(8, 8))}, r"erasing: is not done to patches"),
]


def recipe_of(todo: Any, **more: Any) -> millrace.Recipe:
    return millrace.Recipe(**{"resize": millrace.ExactSize(SIZE), "steps": todo, **more})


@pytest.fixture(scope="module")
def opened(daemon: millrace.PrivateDaemon) -> Iterator[millrace.Session]:
    gc.collect()
    with millrace.connect(daemon.address) as client, client.session(slots=2, slot_bytes=1 << 18) as session:
        yield session
        assert len(session.get(session.submit([png(1)], recipe=recipe_of(())))) == 1  # nothing was lost by any of them


@pytest.mark.parametrize(("todo", "said"), REFUSED)
def test_a_step_that_makes_no_sense_is_named(opened: millrace.Session, todo: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        opened.get(opened.submit([png(1)], recipe=recipe_of(todo)))


@pytest.mark.parametrize("depth", [60, 300])
def test_more_than_messages_may_be_nested_is_refused_and_the_daemon_goes_on(client: millrace.Client, depth: int) -> None:
    """Protocol Buffers read 100 messages in each other; a session that sends more may end."""
    for todo, found in ((nested(depth), 0), ((), 1)):
        with client.session(slots=1, slot_bytes=1 << 18) as session:
            if found:
                assert len(session.get(session.submit([png(1)], recipe=recipe_of(todo)))) == found
            else:
                with pytest.raises(millrace.InvalidRequest):
                    session.get(session.submit([png(1)], recipe=recipe_of(todo)))


@pytest.mark.parametrize(("todo", "said"), REFUSED[::9])
def test_an_epoch_refuses_the_same(opened: millrace.Session, folder: Path, todo: Any, said: str) -> None:
    dataset = opened.dataset(folder)
    with pytest.raises(millrace.InvalidRequest, match=said), opened.epoch(dataset, batch=2, recipe=recipe_of(todo)) as epoch:
        epoch.next()


@pytest.mark.parametrize(("todo", "said"), NEVER_SENT)
def test_what_a_message_cannot_hold_is_refused_by_the_client(opened: millrace.Session, todo: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        opened.submit([png(1)], recipe=recipe_of(todo))


@pytest.mark.parametrize(("erasing", "more", "said"), REFUSED_ERASING)
def test_erasing_that_makes_no_sense_is_named(opened: millrace.Session, erasing: Erasing, more: Any, said: str) -> None:
    with pytest.raises(millrace.InvalidRequest, match=said):
        opened.get(opened.submit([png(1)], recipe=recipe_of((), erasing=erasing, **more)))


def changed(field: str, value: Any) -> Any:
    """Sets what the package never would, in the first step."""

    def change(recipe: Any) -> None:
        *path, last = field.split(".")
        message = recipe.steps[0]
        for name in path:
            message = getattr(message, name)
        if isinstance(value, list):
            getattr(message, last).extend(value)
        else:
            setattr(message, last, value)

    return change


@pytest.mark.parametrize(
    ("todo", "change", "said"),
    [
        (Invert(), lambda recipe: recipe.steps[0].ClearField("simple"), r"steps\[0\]"),
        (Invert(), changed("simple", 0), r"steps\[0\]\.simple"),
        *((Invert(), changed("simple", number), r"steps\[0\]\.simple") for number in (7, -1, 2**31 - 1)),
        (Rotation(), changed("rotation.around.sampling", 4), r"rotation\.around\.sampling"),
        (Rotation(), changed("rotation.around.sampling", -1), r"rotation\.around\.sampling"),
        (AutoAugment(), changed("auto_augment.policy", 4), r"auto_augment\.policy"),
        (TimmRandAugment(), changed("timm_rand_augment.sampling", 9), r"timm_rand_augment.*sampling"),
        (Rotation(), changed("rotation.around.fill", b"\1\2"), r"rotation\.around\.fill"),
        (Rotation(), changed("rotation.around.fill", b"\1" * 100000), r"rotation\.around\.fill"),
        (TimmRandAugment(), changed("timm_rand_augment.fill", b"\1"), r"timm_rand_augment\.fill"),
        (AugMix(), changed("aug_mix.around.sampling", 4), r"aug_mix\.around\.sampling"),
        (TimmAugMix(), changed("timm_aug_mix.fill", b"\1"), r"timm_aug_mix\.fill"),
        (OneOf((Invert(),)), changed("one_of.weights", [1.0] * 100000), r"one_of\.weights"),
    ],
)
def test_what_only_another_client_would_send_is_named(
    opened: millrace.Session, todo: Any, change: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(of: millrace.Recipe) -> Any:
        message = _schema.Recipe()
        message.CopyFrom(recipe_message(of))
        change(message)
        return message

    monkeypatch.setattr(_messages, "recipe_message", spoilt)

    with pytest.raises(millrace.InvalidRequest, match=said):
        opened.get(opened.submit([png(1)], recipe=recipe_of(todo)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sharpness("much"),
        lambda: Sharpness((1, 2, 3)),
        lambda: ColorJitter(hue=()),
        lambda: Affine(translate=(1,)),  # type: ignore[arg-type]
        lambda: Rotation(fill=256),
        lambda: Rotation(fill=(0, 0)),
        lambda: Rotation(fill=(0, 0, 1.5)),
        lambda: Rotation(fill=-1),
        lambda: Rotation(fill="red"),
        lambda: Erasing(value="noise"),  # type: ignore[arg-type]
        lambda: Erasing(scale="all"),
        lambda: Sequence((Invert, Invert())),  # type: ignore[arg-type]
        lambda: Sequence(3),  # type: ignore[arg-type]
        lambda: millrace.Recipe(steps=("flip",)),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_parameter_is_refused_where_it_is_written(make: Any) -> None:
    with pytest.raises(millrace.InvalidRequest):
        make()


@pytest.mark.parametrize(
    "todo",
    [
        (nested(8),),
        tuple(Invert() for _ in range(64)),
        (RandAugment(16),) * 4,
        (OneOf((Invert(), VerticalFlip()), (0, 1e6)),),
        (Affine(scale=(0.01, 1000), shear_x=(-89, 89), shear_y=(-89, 89), translate=(1, 1), degrees=(-36000, 36000)),),
        (GaussianBlur(63, 100), PillowBlur(100)),
        (Sharpness(1000), ColorJitter((1000, 1000), (1000, 1000), (1000, 1000), 0.5)),
        (AugMix(10, 8, 6, 0.1),),
        (TimmAugMix(10, 100, 1, 16, 100), AugMix(10, 5, 6, 100, probability=0.5)),
        (RandAugment(magnitude=999, bins=1000), TrivialAugmentWide(1000), TimmRandAugment(16, 10, 100, 1)),
    ],
)
def test_the_largest_that_is_allowed_is_done(opened: millrace.Session, todo: Any) -> None:
    batch = opened.get(opened.submit([png(n) for n in range(16)], recipe=recipe_of(todo, layout="NHWC"), seed=1))

    assert batch.images.shape == (16, SIZE.height, SIZE.width, 3)


def test_any_step_at_all_is_answered(opened: millrace.Session) -> None:
    """Random trees with random numbers: done, or refused by name."""
    random = np.random.default_rng(5)
    kinds = [kind for kind in vars(steps).values() if isinstance(kind, type) and issubclass(kind, steps.Step) and kind is not steps.Step]
    outcomes = {"done": 0, "refused": 0, "too small": 0}
    for _ in range(300):
        try:
            recipe = recipe_of([_any_step(random, kinds, 0) for _ in range(random.integers(1, 4))], packing="packed")
            opened.get(opened.submit([png(1)], recipe=recipe, seed=int(random.integers(100))), timeout=300).release()
            outcomes["done"] += 1
        except millrace.SampleFailed:
            outcomes["too small"] += 1
        except millrace.InvalidRequest as why:
            outcomes["refused" if re.search("step|recipe|must be|at least", str(why)) else str(why)] += 1
    assert outcomes["done"] > 20, outcomes
    assert outcomes["refused"] > 20, outcomes


def _any_step(random: np.random.Generator, kinds: list[Any], depth: int) -> Any:
    kind = kinds[random.integers(len(kinds))]
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name == "steps":
            values["steps"] = [_any_step(random, kinds, depth + 1) for _ in range(random.integers(1, 3))] if depth < 9 else [Invert()]
        elif field.name not in ("sampling", "fill", "policy", "weights") and random.random() < 0.3:
            plain, wild = (0.5, 1, 3, (0.2, 0.8)), (*BAD, 0, -1, 2**31, (1, 0), (0, 5e4))
            choices = plain if random.random() < 0.8 else wild
            values[field.name] = choices[random.integers(len(choices))]
    return kind(**values)


# ----------------------------------------------------------------------------------------------------- a picture that is too small

LOW = png_of(np.full((4, 48, 3), 7, np.uint8))
BLUR = millrace.Recipe(packing="packed", layout="NHWC", steps=(GaussianBlur(9),))


def test_a_picture_that_is_too_small_for_a_blur_fails_alone(opened: millrace.Session) -> None:
    with pytest.raises(millrace.SampleFailed, match=r"steps|blur") as caught:
        opened.get(opened.submit([png(1), LOW, png(2)], recipe=BLUR))

    assert [error.index for error in caught.value.sample_errors] == [1]


@pytest.mark.parametrize(("on_error", "ids"), [("skip", [10, 12]), ("zero", [10, 11, 12]), ("substitute", [10, 10, 12])])
def test_a_batch_deals_with_it_as_it_was_told(opened: millrace.Session, on_error: Any, ids: list[int]) -> None:
    samples = [millrace.Sample(data, id=10 + n) for n, data in enumerate((png(1), LOW, png(2)))]
    good = opened.get(opened.submit([samples[0], samples[2]], recipe=BLUR, seed=1))

    batch = opened.get(opened.submit(samples, recipe=BLUR, seed=1, on_error=on_error))

    assert batch.ids.tolist() == ids
    np.testing.assert_array_equal(batch.image(0).numpy(), good.image(0).numpy())
    np.testing.assert_array_equal(batch.image(-1).numpy(), good.image(1).numpy())
    if on_error == "zero":
        assert not np.asarray(batch.image(1).numpy()).any()


def test_a_blur_that_is_not_drawn_or_a_larger_picture_is_no_error(opened: millrace.Session) -> None:
    least = png_of(np.full((5, 48, 3), 7, np.uint8))
    never = dataclasses.replace(BLUR, steps=(GaussianBlur(9, probability=0),))

    assert len(opened.get(opened.submit([least], recipe=BLUR))) == 1
    assert len(opened.get(opened.submit([LOW], recipe=never))) == 1
