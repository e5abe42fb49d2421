"""Items with named fields, of tables and of objects, as documents: what their formats share."""
