"""Asking through an endpoint's batches (OpenAI's ``/files`` and ``/batches``): cheaper, later."""

from adhere.batch.client import BatchClient

__all__ = ["BatchClient"]
