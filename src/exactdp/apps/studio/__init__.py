"""The studio: a local web page in which a design is edited while its exact guarantee follows, and the JSON API under it."""
