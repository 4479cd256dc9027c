"""What the loaders of all frameworks share: arguments, order, ranks, position, and the loop."""
