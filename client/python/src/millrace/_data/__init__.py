"""What a loader reads: folders, lists of files and sources of encoded images, with the columns that belong to their samples."""
