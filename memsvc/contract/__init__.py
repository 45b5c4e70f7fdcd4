"""What goes over the wire, once for all doors: needs `memsvc.format` only, no Django and no HTTP."""
