"""What has been made, and whether it still is what it should be."""

from toolkit.stages.state import State, state_of

__all__ = ["State", "state_of"]
