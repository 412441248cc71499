"""The FastAPI application: routes over one engine."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from adhere import __version__
from adhere.service.batches import lines
from adhere.service.bodies import BoundedRoute
from adhere.service.door import Door
from adhere.service.engine import Engine
from adhere.service.forms import Batch, Item, Line, Result
from adhere.service.gym_routes import gym_router
from adhere.service.items import row_of
from adhere.service.machine_routes import machine_router
from adhere.service.metrics import Metrics
from adhere.service.refusal import RESPONSES, Refusal, content
from adhere.service.requests import Service, json_response, while_connected
from adhere.service.results import result_of
from adhere.service.settings import Settings

_NDJSON = "application/x-ndjson"
_MOST_PROBLEMS = 20
_ABOUT = (
    "Did a response follow its constraints? Verdicts are those of Adhere's judge stage: the same "
    "chains, prompts, parser and sandbox."
)


def make_app(engine: Engine, settings: Settings) -> ASGIApp:
    """Return the application, behind its door."""
    metrics = Metrics(engine.gate, engine.client)
    service = Service(engine, settings, metrics)
    app = FastAPI(
        title="Adhere's verifier",
        version=__version__,
        description=_ABOUT,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(HTTPBearer(auto_error=False))] if settings.token else [],
    )
    for router in (_router(service), gym_router(service), machine_router(service)):
        app.include_router(router)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)
    endpoints = set(app.openapi()["paths"]) | {"/openapi.json"}
    return Door(app, engine.gate, metrics, settings.token, endpoints)


def _router(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", route_class=BoundedRoute, responses=RESPONSES, tags=["verify"])
    limits = service.settings.limits

    async def answer(request: Request, item: Item) -> Result:
        row = await service.judged(request, lambda: row_of(item, limits), item.constraints)
        return result_of(row, item.id, trace=item.trace)

    @router.post("/verify", responses={200: {"model": Result}}, response_model=None)
    async def verify(request: Request, item: Item) -> Response:
        """Judge one item."""
        result = await while_connected(request, answer(request, item))
        return json_response(result.model_dump())

    @router.post(
        "/verify/batch",
        responses={200: {"content": {_NDJSON: {}}, "description": Line.__doc__}},
        response_class=StreamingResponse,
    )
    async def verify_batch(request: Request, batch: Batch) -> Response:
        """Judge many items; each has its line of JSON as soon as it is done."""
        if len(batch.items) > limits.items:
            raise Refusal(
                422, "invalid", f"items: found {len(batch.items)}; allowed: {limits.items} at most"
            )

        async def one(raw: dict[str, Any]) -> Result:
            return await answer(request, _item(raw))

        streamed: AsyncIterator[bytes] = lines(batch.items, one, limits.running)
        return StreamingResponse(streamed, media_type=_NDJSON)

    return router


def _item(raw: dict[str, Any]) -> Item:
    try:
        return Item.model_validate(raw)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        raise Refusal(422, "invalid", _told(problems)) from None


def _told(problems: Any) -> str:
    """Return what is wrong, by its place; nothing of what was sent is repeated."""
    told = [
        f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
        for problem in problems[:_MOST_PROBLEMS]
    ]
    return "\n".join(told)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for this class"
    kind = error.kind if isinstance(error, Refusal) else f"http_{error.status_code}"
    response = json_response(content(kind, str(error.detail)))
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "registered for this class"
    response = json_response(content("invalid", _told(error.errors())))
    response.status_code = 422
    return response


async def _failed(_request: Request, _error: Exception) -> Response:
    response = json_response(content("internal", "this is a fault of the server: see its log"))
    response.status_code = 500
    return response
