"""What a loader makes of each image: its own transform, the dataset object's, or the default; and how much of a transform a recipe says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millrace._recipe.geometry import why_sizes_differ
from millrace._transforms.albumentations import ALBUMENTATIONS
from millrace._transforms.timm import TIMM
from millrace._transforms.torchvision import TORCHVISION
from millrace._transforms.translation import Language, Translation, flat, package_of
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


def split(transform: Any) -> tuple[Recipe, list[Any]]:
    """The longest beginning of ``transform`` that a recipe says, and the rest as a list of transforms, in their order.

    The rest takes one image of those that the loader yields, and ``Rest`` does it to all; it draws from its own library's generators, so a
    resumed epoch is not the same there. Where the transforms are still of PIL images, it begins with torchvision's ``ToPILImage``. Without
    a rest the list is empty.

        >>> recipe, rest = millrace.torch.split(transform)
        >>> loader = millrace.torch.Loader("/data/train", recipe, batch_size=256, shuffle=True)
        >>> for images, labels in millrace.torch.Rest(loader, rest):  # done in threads
        ...     train(images, labels)

    A recipe whose images differ in size (``recipe.fixed_size`` is None, and there is no resize to one size) makes no batch: put a resize
    at the beginning.

    Args:
        transform: as ``from_torchvision`` and ``from_timm`` take it; what they refuse becomes part of the rest.

    Raises:
        Unsupported: it is Albumentations'.
    """
    language = language_of(transform)
    if language is ALBUMENTATIONS:
        raise Unsupported("split: Albumentations' transforms take arrays by name, not the loader's tensors: divide the list by hand")
    translation = Translation(language)
    transforms = list(flat(transform))
    recipe, done, is_tensor = Recipe(), 0, False
    for number, each in enumerate(transforms):
        try:
            translation.add(each)
        except (Unsupported, InvalidRequest):
            break
        try:
            made = translation.finished()
        except Unsupported:  # unless what follows makes sense of it
            continue
        if made.views and number + 1 < len(transforms):  # what is left over would be given each image, not all of a sample's
            continue
        recipe, done, is_tensor = made, number + 1, translation.is_tensor
    rest = transforms[done:]
    if rest and not is_tensor:
        from torchvision.transforms import ToPILImage

        rest.insert(0, ToPILImage())
    return recipe, rest
