"""What the studio's API takes and gives."""
