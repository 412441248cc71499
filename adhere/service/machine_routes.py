"""Endpoints for machines that look after the server."""

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from adhere import PROTOCOL, __version__
from adhere.service.refusal import RESPONSES, Refusal
from adhere.service.requests import Service


def machine_router(service: Service) -> APIRouter:
    """Return health, readiness, figures, and what verdicts rest on."""
    router = APIRouter(responses={503: RESPONSES[503]}, tags=["operation"])
    engine, settings = service.engine, service.settings

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Say that the process answers."""
        return {"status": "ok"}

    @router.get("/readyz")
    async def readyz() -> dict[str, str]:
        """Say whether requests are taken: 503 on the way out."""
        if engine.gate.draining:
            raise Refusal(503, "draining", "the server is about to end")
        return {"status": "ready"}

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @router.get("/v1/about")
    async def about() -> dict[str, Any]:
        """Say what verdicts rest on: two servers that agree in this give the same ones."""
        isolation = engine.pool.isolation
        return {
            "version": __version__,
            "protocol": PROTOCOL,
            "judge": engine.judge.name,
            "judge_hash": engine.judge.hash,
            "parser": engine.judge.config.parser,
            "reward": settings.reward,
            "policy": settings.policy,
            "mask_judge_failures": settings.mask,
            "isolation": {"level": isolation.level, "allows": list(isolation.allows)},
        }

    return router
