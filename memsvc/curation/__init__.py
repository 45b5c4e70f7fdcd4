"""The admin: people look at their tenants' memory, and hand out keys. What it changes goes through the services."""
