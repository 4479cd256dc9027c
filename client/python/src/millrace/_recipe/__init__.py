"""The values that recipes and steps of augmentation are made of."""
