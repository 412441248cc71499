"""The verifier as a service: the engine that judges files, asked over HTTP.

    settings.py    what a server is started with, and its limits
    server.py      the process: socket, signals, drain
    app.py         the FastAPI application: routes
    door.py        what each request meets first: its number, the token, a place, the log line
    gate.py        how much is taken in at once, and what is refused
    bodies.py      bodies within limits, as strict JSON
    forms.py       what ``/v1/verify`` takes and returns
    items.py       from these to rows of a dataset
    results.py     and back from judged rows
    requests.py    what the routes share
    gym.py         NeMo Gym's contract: its forms, rewards
    gym_metrics.py … its aggregate metrics
    gym_routes.py  … its endpoints
    machine_routes.py  health, figures, what verdicts rest on
    engine.py      from a row to its verdicts
    batches.py     many items, streamed
    metrics.py     Prometheus
    logs.py        one JSON object a line
    refusal.py     refusals by status and kind

The HTTP libraries are imported here and nowhere else.
"""
