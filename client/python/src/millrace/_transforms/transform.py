"""What a loader makes of each image: its own transform, the dataset object's, or the default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millrace._recipe.geometry import why_sizes_differ
from millrace._transforms.albumentations import ALBUMENTATIONS
from millrace._transforms.timm import TIMM
from millrace._transforms.torchvision import TORCHVISION
from millrace._transforms.translation import Language, flat, package_of
from millrace.errors import InvalidRequest, Unsupported
from millrace.recipe import Recipe

AnyTransform = Recipe | Callable[..., Any] | Sequence[Callable[..., Any]]
"""A recipe, or torchvision's, timm's or Albumentations' transforms: a ``Compose``, a list, one."""


def recipe_of(transform: Any, datasets_own: Any) -> Recipe:
    """What a loader makes of each image.

    Args:
        transform: its argument.
        datasets_own: the transform of the dataset object that it was given.

    Raises:
        InvalidRequest: it is none; or the dataset has a transform of its own, and another one is given beside it.
        Unsupported: see ``from_torchvision`` and ``from_timm``.
    """
    if isinstance(transform, int):
        raise InvalidRequest(f"loader: the second argument is the transform; DataLoader's is a keyword here: batch_size={transform}")
    if transform is None and datasets_own is None:
        return Recipe.evaluate(256, 224)
    if transform is None:
        return translated(datasets_own)
    recipe = translated(transform)
    if datasets_own is not None and not _does_the_same(datasets_own, recipe):
        raise InvalidRequest(
            "loader: the dataset has a transform of its own, and it is not the one given beside it: leave out transform=, or make the "
            "dataset without one"
        )
    return recipe


def check_one_size(recipe: Recipe, asked_by: str = "loader") -> None:
    """Whether a batch of its images is one tensor, or one for each view.

    Raises:
        InvalidRequest: it is not; says what of the recipe leaves the size open.
    """
    must = f"{asked_by}: the transform must make images of one size"
    if recipe.packing == "packed" and recipe.patches is None:
        raise InvalidRequest(f'{must}, not packed: leave out packing="packed", and fix the size by a resize, Recipe.pad or a centre crop')
    for view in recipe.views or (recipe,):
        if view.fixed_size is None:
            raise InvalidRequest(f"{must}: {why_sizes_differ(view.resize, view.pad)}")


def same_transform(transforms: Sequence[Any]) -> Any:
    """The one that the parts of a dataset have; None: none has one.

    Raises:
        InvalidRequest: they have several, or some have none.
    """
    first = transforms[0] if transforms else None
    for other in transforms[1:]:
        if other is first or (first is not None and other is not None and _does_the_same(first, translated(other))):
            continue
        raise InvalidRequest(
            "loader: the parts of the dataset have different transforms, and what is made of an image here is the same for all: make them "
            "without one and give the loader a transform, or make a loader for each"
        )
    return first


def _does_the_same(transform: Any, recipe: Recipe) -> bool:
    try:
        return translated(transform) == recipe
    except Unsupported:
        return False


def translated(transform: Any) -> Recipe:
    """A recipe as it is; else what other libraries' transforms say. Raises Unsupported: see ``from_torchvision`` and ``from_timm``."""
    return transform if isinstance(transform, Recipe) else language_of(transform).recipe(transform)


def language_of(transform: Any) -> Language:
    """What translates it: by the libraries from which its transforms are."""
    packages = {package_of(each) for each in flat(transform)}
    return ALBUMENTATIONS if "albumentations" in packages else TIMM if "timm" in packages else TORCHVISION
