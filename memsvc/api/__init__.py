"""REST under /v1, for agents and programs: each view parses, calls one function of the tree, and renders."""
