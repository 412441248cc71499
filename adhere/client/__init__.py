"""Calling OpenAI-compatible chat endpoints: one client, one retry layer, named failures."""

from adhere.client.chat import ChatClient
from adhere.client.endpoint import Endpoint
from adhere.client.reply import Failure, Reply

__all__ = ["ChatClient", "Endpoint", "Failure", "Reply"]
