"""Input that attacks: configurations, inputs and machines as nobody wishes them."""
