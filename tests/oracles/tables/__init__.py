"""Tables that ship with the project, made from other programs by hand; each script says how."""
