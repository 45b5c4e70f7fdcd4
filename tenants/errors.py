"""What tenants and keys refuse, in words that say what to do."""


class TenantError(Exception):
    """Base of everything below; `str(error)` is a sentence for whoever asked."""


class InvalidTenant(TenantError):
    """A slug or name that a tenant can't have."""


class TenantExists(TenantError):
    def __init__(self, slug: str) -> None:
        super().__init__(f"There is already a tenant '{slug}'; choose another slug.")


class InvalidKey(TenantError):
    """A name, scope, tree, folder or expiry that a key can't have."""
