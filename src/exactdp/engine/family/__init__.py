"""All pairs of a release at once: the members' moment functions are shared by their pairs."""
