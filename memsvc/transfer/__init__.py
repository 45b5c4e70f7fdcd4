"""Memory in and out: a tree as a zip archive or a directory, byte for byte."""
