"""A JSON Schema of the configuration, made from the types of its settings and from the plugins that are installed."""
