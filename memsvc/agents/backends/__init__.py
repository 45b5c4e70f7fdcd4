"""One deepagents backend over two ports to a tree: in the process of the database (`local`), over HTTP (`remote`)."""
