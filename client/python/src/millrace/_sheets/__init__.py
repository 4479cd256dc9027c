"""Batches as pictures again, and contact sheets of them."""
