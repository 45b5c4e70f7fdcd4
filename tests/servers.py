"""PostgreSQL servers of the tests."""

import psycopg

from memsvc.embedded import Cluster


def hurry(cluster: Cluster) -> None:
    """Making and emptying tables is mostly fsync, without which a killed process still loses nothing."""
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as server:
        server.execute("ALTER SYSTEM SET fsync = off")
        server.execute("SELECT pg_reload_conf()")
