"""Memory that the daemon and this process share, on the host and on a GPU: how it is laid out, mapped, leased and shown as tensors."""
