"""What a caller may give as an image, as what the daemon takes."""
