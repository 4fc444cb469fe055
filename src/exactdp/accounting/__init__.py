"""Section 3 of the paper: compositions and the exact answers about them."""
