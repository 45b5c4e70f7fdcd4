"""Crossings between tenants: see migrations/tenants/0005_crossings.py."""

from django.db import migrations

# For groups of tenants: where their rows are on several servers, one that is down is in the way of those that it has. And
# in PL/pgSQL, whose parameters may say to which server a statement goes, as those of SQL may not.
BY_GROUP = "LANGUAGE plpgsql {} SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$ BEGIN {}; END $$"

# In random order, so that no tree waits behind others whose jobs fail.
STALE_TREES = "CREATE FUNCTION memsvc_stale_trees(tenants uuid[], wanted text, most int) RETURNS TABLE (tenant uuid, tree uuid) " + (
    BY_GROUP.format(
        "VOLATILE",
        """
    RETURN QUERY SELECT t.tenant_id, t.id
    FROM tree_tree t
    LEFT JOIN recall_embeddedtree m ON m.tenant_id = t.tenant_id AND m.tree_id = t.id AND m.model = wanted
    WHERE t.tenant_id = ANY (tenants) AND t.revision > coalesce(m.revision, 0)
    ORDER BY random() LIMIT most
""",
    )
)
EXPIRED = "CREATE FUNCTION memsvc_tenants_with_expired_vectors(tenants uuid[]) RETURNS SETOF uuid " + BY_GROUP.format(
    "STABLE",
    """
    RETURN QUERY SELECT DISTINCT v.tenant_id FROM recall_vector v
    WHERE v.tenant_id = ANY (tenants) AND v.expires_at <= now()
""",
)


class Migration(migrations.Migration):
    dependencies = [("recall", "0004_estimates")]

    operations = [
        migrations.RunSQL(STALE_TREES, "DROP FUNCTION memsvc_stale_trees(uuid[], text, int)"),
        migrations.RunSQL(EXPIRED, "DROP FUNCTION memsvc_tenants_with_expired_vectors(uuid[])"),
    ]
