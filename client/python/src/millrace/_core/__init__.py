"""A session with the daemon: its requests, its datasets, its epochs and its batches."""
