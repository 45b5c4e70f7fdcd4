"""What a key may do. A key without a scope may do nothing."""

from enum import StrEnum


class Scope(StrEnum):
    READ = "read"
    WRITE = "write"
    CONSOLIDATE = "consolidate"
    EXPORT = "export"
    ADMIN = "admin"
