"""The steps of a mix, which `mix`, `run`, `status` and `stats` share: preparation, previews, publication, tables."""
