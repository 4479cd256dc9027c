"""Tar shards: where their members lie, by webdataset's rules, and the index files in which that is kept."""
