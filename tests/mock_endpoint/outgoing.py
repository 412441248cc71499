"""A reply ready to be sent, and the bodies of errors."""

from dataclasses import dataclass, field

import orjson

from mock_endpoint.config import ErrorBody, Json


@dataclass(slots=True)
class Outgoing:
    """A reply ready to be sent; ``completion`` says that it is a chat completion with choices."""

    status: int
    payload: bytes
    headers: dict[str, str] = field(default_factory=dict)
    completion: bool = False


_ERROR_DEFAULTS: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def error_payload(status: int, error: ErrorBody) -> Json:
    """Return an ``error`` object; what is not set follows from the status."""
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    error_type, code = _ERROR_DEFAULTS.get(status, (fallback, None))
    return {
        "message": error.message if error.message is not None else f"The mock answers {status}.",
        "type": error.type if error.type is not None else error_type,
        "param": error.param,
        "code": error.code if error.code is not None else code,
    }


def failure(status: int, payload: Json) -> Outgoing:
    """Return a reply with this ``error`` object."""
    return Outgoing(status, orjson.dumps({"error": payload}))


def refuse(status: int, message: str, code: str, param: str | None = None) -> Outgoing:
    """Return a refusal as OpenAI words it."""
    error = ErrorBody(message=message, code=code, param=param)
    return failure(status, error_payload(status, error))
