"""What has been made, and whether it still is what it should be."""

from toolkit.stages.state import state_of

__all__ = ["state_of"]
