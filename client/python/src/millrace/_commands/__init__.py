"""The commands of ``python -m millrace`` beside the contact sheet."""
