"""What the package and the daemon say to each other: messages, their schema, and the sockets that they go over."""
