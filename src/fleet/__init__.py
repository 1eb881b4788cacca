"""Fleet: queue work for coding agents, run them in parallel, land only what passes."""

__version__ = "0.1.0"
