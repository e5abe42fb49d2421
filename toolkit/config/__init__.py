"""From YAML to typed settings."""
