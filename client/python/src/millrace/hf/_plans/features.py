"""What a processor returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.errors import InvalidRequest
from millrace.hf._plans.elements import as_torch, shown


class Features(dict[str, Any]):
    """The arrays by name, as transformers' ``BatchFeature``: ``features["pixel_values"]`` and ``features.pixel_values``.

    ``model(**features)`` works, and so do ``to`` and ``convert_to_tensors``. Arrays that show shared memory may be written to, which
    changes nothing but them. They keep their slot in the daemon as long as they, or views of them, live.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no {name!r} among the features: {', '.join(self)}") from None

    def to(self, *args: Any, **kwargs: Any) -> Features:
        """Moves PyTorch's tensors, and gives those of floating point another type: ``to("cuda", torch.bfloat16)``. Changes this object.

        Raises:
            InvalidRequest: there is none, because they are NumPy's.
        """
        import torch

        if not any(isinstance(value, torch.Tensor) for value in self.values()):
            raise InvalidRequest('Features.to: these are no tensors of PyTorch; ask for return_tensors="pt"')
        device = kwargs.get("device", args[0] if args and not isinstance(args[0], torch.dtype) else None)
        for key, value in self.items():
            if not isinstance(value, torch.Tensor):
                continue
            if value.is_floating_point():
                self[key] = value.to(*args, **kwargs)
            elif device is not None:
                self[key] = value.to(device, non_blocking=kwargs.get("non_blocking", False))
        return self

    def convert_to_tensors(self, tensor_type: str | None = None) -> Features:
        """Makes all of them PyTorch's (``"pt"``) or NumPy's (``"np"``), without a copy. Changes this object; None: it stays as it is."""
        if tensor_type not in (None, "np", "pt"):
            raise InvalidRequest(f"convert_to_tensors: must be np or pt, is {tensor_type!r}")
        if tensor_type == "pt":
            self.update({key: _as_torch(value) for key, value in self.items() if isinstance(value, np.ndarray)})
        elif tensor_type == "np":
            self.update({key: _as_numpy(value) for key, value in self.items() if not isinstance(value, np.ndarray)})
        return self


def _as_torch(array: NDArray[Any]) -> Any:
    return as_torch(array.view(np.uint16), "bfloat16") if array.dtype.name == "bfloat16" else as_torch(array, "float32")


def _as_numpy(tensor: Any) -> NDArray[Any]:
    import torch

    tensor = tensor.detach().cpu()
    if tensor.dtype != torch.bfloat16:
        array: NDArray[Any] = tensor.numpy()
        return array
    return shown(tensor.view(torch.uint16).numpy(), "bfloat16")
