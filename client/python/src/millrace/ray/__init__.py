"""Ray Data: images decoded by one daemon on each node, with one copy of their pixels, into Ray's object store.

    >>> dataset = millrace.ray.read_images("/data/train", millrace.Recipe.train(224), include_labels=True, shuffle="files")
    >>> for batch in dataset.iter_torch_batches(batch_size=64):
    ...     train(batch["image"], batch["label"])

``read_images`` lists folders and reads files; ``Preprocess`` is for ``Dataset.map_batches`` where a dataset has paths or encoded bytes
already. Both use the daemon that runs on their node, or have one started there (``Daemon``). client/python/doc/ray.md says more.
"""

try:
    import ray.data  # noqa: F401
except ImportError as _why:
    raise ImportError(
        f"millrace.ray needs Ray Data, which cannot be imported ({_why}): pip install 'millrace[ray]', or 'ray[data]' into this environment"
    ) from _why

from millrace.ray._listing import class_names
from millrace.ray._node import Daemon, DaemonLost, stop_daemons
from millrace.ray._preprocess import Preprocess
from millrace.ray._read import read_images

__all__ = ["Daemon", "DaemonLost", "Preprocess", "class_names", "read_images", "stop_daemons"]
