"""Finding things in a tree."""
