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


class KeyNotFound(TenantError):
    """No such key, or none that the asking key may know of."""

    def __init__(self) -> None:
        super().__init__("There is no such key.")


class KeyEnded(TenantError):
    """A key that is revoked or expired, and can't be replaced any more."""

    def __init__(self) -> None:
        super().__init__("This key is revoked or expired; make a new one instead.")


class BeyondOwnKey(TenantError):
    """A key was to get more than the one that makes it has."""
