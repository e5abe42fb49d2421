"""What commands count that show it among other things."""
