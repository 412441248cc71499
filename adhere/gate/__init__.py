"""Around a team's agent: the gate and its baselines, the archive of failures, checks of judges."""
