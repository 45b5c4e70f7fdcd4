"""A tenant's tree as rows, and the only code that writes them.

`services` change a tree, `reads` read one; both take an `Access`. Nothing else touches the rows.
"""
