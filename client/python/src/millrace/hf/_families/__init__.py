"""Which class of transformers' image processors reads its configuration how."""
