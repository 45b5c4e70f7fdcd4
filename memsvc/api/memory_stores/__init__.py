"""The door for clients of memory stores: stores, memories at paths, and immutable versions with actors.

A store is a tree, a memory a file, a version what one revision made of a file. See docs/compatibility.md.
"""
