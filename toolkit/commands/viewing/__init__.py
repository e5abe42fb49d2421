"""What `view` and others like it look at: from a configuration, or a path, to what is browsed."""
