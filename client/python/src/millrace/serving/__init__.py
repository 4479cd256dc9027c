"""Plug-ins for vLLM and SGLang: their models' image processors with the host's daemon doing the work. See doc/serving.md.

Both servers find them by the package's entry points and call ``register`` in each of their processes. They do nothing unless the
environment asks for it (``settings.py``). Nothing of a server, of ``transformers`` or of PyTorch is imported before.
"""
