"""What happened to a tree: all of it is told from one timeline, and every change is found in the rows by it alone."""
