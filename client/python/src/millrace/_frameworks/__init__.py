"""What one framework needs and the others do not."""
