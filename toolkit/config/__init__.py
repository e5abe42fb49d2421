"""From YAML to typed settings; plugins and model files by the names that settings give them."""
