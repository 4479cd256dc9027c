"""Tables of images: Hugging Face's Arrow files and Parquet, whose images the daemon reads as parts of these files."""
