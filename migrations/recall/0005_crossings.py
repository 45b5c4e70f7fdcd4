"""Crossings between tenants: see migrations/tenants/0005_crossings.py."""

from django.db import migrations

# In random order, so that no tree waits behind others whose jobs fail.
STALE_TREES = """
CREATE FUNCTION memsvc_stale_trees(wanted text, most int) RETURNS TABLE (tenant_id uuid, tree_id uuid)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t.tenant_id, t.id
    FROM tree_tree t
    LEFT JOIN recall_embeddedtree m ON m.tenant_id = t.tenant_id AND m.tree_id = t.id AND m.model = wanted
    WHERE t.revision > coalesce(m.revision, 0)
    ORDER BY random() LIMIT most
$$
"""
EXPIRED = """
CREATE FUNCTION memsvc_tenants_with_expired_vectors() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT DISTINCT tenant_id FROM recall_vector WHERE expires_at <= now()
$$
"""


class Migration(migrations.Migration):
    dependencies = [("recall", "0004_estimates")]

    operations = [
        migrations.RunSQL(STALE_TREES, "DROP FUNCTION memsvc_stale_trees(text, int)"),
        migrations.RunSQL(EXPIRED, "DROP FUNCTION memsvc_tenants_with_expired_vectors()"),
    ]
