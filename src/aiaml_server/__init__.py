"""AI Agnostic Memory Layer: one memory, in plain files, for every AI agent that a person uses."""

__version__ = "0.1.0"
