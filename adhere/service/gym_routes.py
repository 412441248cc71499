"""NeMo Gym's endpoints, as its 0.7 serves them for a resources server."""

import asyncio
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from adhere.service.bodies import BoundedRoute
from adhere.service.gym import VerifyRequest, VerifyResponse, passed_through, results, row_of
from adhere.service.gym_metrics import Aggregate, AggregateRequest, aggregate
from adhere.service.refusal import RESPONSES, Refusal
from adhere.service.requests import Service, json_response, while_connected


class Session(BaseModel):
    """A session's number where the client gives it one; nothing is kept for it."""

    model_config = ConfigDict(extra="allow")

    resources_session_id: str | None = None


def gym_router(service: Service) -> APIRouter:
    """Return the endpoints of NeMo Gym's contract."""
    router = APIRouter(route_class=BoundedRoute, responses=RESPONSES, tags=["NeMo Gym"])
    settings = service.settings

    async def rewarded(request: Request, body: VerifyRequest) -> dict[str, Any]:
        begin, limits = passed_through(body), settings.limits
        meta = body.verifier_metadata or {}
        mask = meta.get("mask_judge_failures", settings.mask)
        constraints = meta.get("constraints")
        row = await service.judged(request, lambda: row_of(body, limits), constraints)
        found = results(row, body, settings.reward, settings.policy, mask=mask is True)
        return begin | found

    @router.post("/verify", responses={200: {"model": VerifyResponse}}, response_model=None)
    async def verify(request: Request, body: VerifyRequest) -> Response:
        """Reward one rollout; the response is the request with the results."""
        return json_response(await while_connected(request, rewarded(request, body)))

    @router.post("/seed_session", response_model_exclude_none=True)
    async def seed_session(body: Session | None = None) -> Session:
        """Do nothing: a verdict depends on its request alone."""
        return Session(resources_session_id=body.resources_session_id if body else None)

    @router.post("/close_session", response_model_exclude_none=True)
    async def close_session(body: Session | None = None) -> Session:
        """Do nothing, likewise."""
        return Session(resources_session_id=body.resources_session_id if body else None)

    @router.post("/aggregate_metrics", responses={200: {"model": Aggregate}}, response_model=None)
    async def aggregate_metrics(body: AggregateRequest) -> Response:
        """Sum up verify responses."""
        try:
            found = await asyncio.to_thread(aggregate, body.verify_responses)
        except OverflowError as error:
            raise Refusal(422, "invalid", f"verify_responses: {error}") from None
        return json_response(found.model_dump())

    @router.get("/reverify_mode")
    async def reverify_mode() -> Literal["stateless"]:
        """Say that the same rollout may be verified again at any time."""
        return "stateless"

    return router
