"""The studio's server: security, routes, scheduling, worker processes."""
