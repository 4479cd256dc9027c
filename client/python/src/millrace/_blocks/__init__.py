"""Sources that are read in blocks, and the order of epochs in blocks."""
