"""What the studio's worker processes compute."""
