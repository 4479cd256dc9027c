"""What of a transform the daemon does, and what is left to do."""

from __future__ import annotations

from typing import Any

from millrace._transforms.albumentations import ALBUMENTATIONS
from millrace._transforms.transform import language_of
from millrace._transforms.translation import Translation, flat
from millrace.errors import InvalidRequest, Unsupported
from millrace.recipe import Recipe


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
