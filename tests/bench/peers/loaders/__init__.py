"""One module a peer; each has a class ``Loader``, a subclass of ``loaders.base.Peer``."""
