"""What a server counts about itself: the prefix cache's figures in vLLM's ``GET /metrics``."""

import re

from adhere.engines import _probe

# One line a counter and engine of the server, in Prometheus' text format.
_PREFIX_CACHE = re.compile(
    r"^vllm:prefix_cache_(queries|hits)(?:_total)?(?:\{[^}]*\})? (\S+)", re.MULTILINE
)


def prefix_cache(root: str) -> dict[str, float | None]:
    """Ask the server at ``root`` for its prefix cache's figures since its start.

    ``queries`` and ``hits`` count tokens of prompts; ``hit_rate`` is hits / queries. None where
    the server does not count or does not answer, and for the rate of nothing.
    """
    text = (_probe.get(root, "/metrics") or b"").decode("utf-8", "replace")
    counts: dict[str, float] = {}
    for name, value in _PREFIX_CACHE.findall(text):
        counts[name] = counts.get(name, 0.0) + float(value)
    queries, hits = counts.get("queries"), counts.get("hits")
    rate = hits / queries if queries and hits is not None else None
    return {"queries": queries, "hits": hits, "hit_rate": rate}
