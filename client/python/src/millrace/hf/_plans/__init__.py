"""What a processor asks the daemon for, and how its answer becomes the model's inputs."""
