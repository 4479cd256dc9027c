"""What stands in a loop in a loader's place, and changes its batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from millrace._core.batch import Batch

if TYPE_CHECKING:
    from typing_extensions import Self

    from millrace.torch import Loader


class OverLoader:
    """It has no state of its own and stands where the loader stands.

    So it does for Lightning's ``fit`` and accelerate's ``register_for_checkpointing``, too: ``state_dict``, ``load_state_dict``,
    ``set_epoch``, ``skip_first_batches``, ``close`` and ``with`` are the loader's, and so are its other public names (``epoch``, ``batch``,
    ``dataset``, ``sampler``, ``batch_size``, ...). A loop over it is the loader's one loop.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        return self._each(iter(self._loader))

    def _each(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What becomes of the loader's batches."""
        raise NotImplementedError

    # A program that looks for what has a state looks at the class (``typing.runtime_checkable``), so these are not left to __getattr__.

    @property
    def epoch(self) -> int:
        """The loader's: of the epoch that is under way, or that the next ``iter()`` begins."""
        return self._loader.epoch

    @property
    def batch(self) -> Batch | None:
        """The loader's: the batch of the loop's current turn, as the daemon made it, with ids, boxes, ...; None outside of the loop."""
        return self._loader.batch

    def set_epoch(self, epoch: int) -> None:
        """As the loader's."""
        self._loader.set_epoch(epoch)

    def skip_first_batches(self, batches: int) -> Self:
        """As the loader's. Returns itself."""
        self._loader.skip_first_batches(batches)
        return self

    def state_dict(self) -> dict[str, Any]:
        """The loader's, and all of it."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As the loader's: the next ``iter()`` goes on after that batch. Raises as there."""
        self._loader.load_state_dict(state)

    def close(self) -> None:
        """As the loader's."""
        self._loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while it is unpickled, before it has a loader
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._loader, name)
