"""A crossing between tenants: see migrations/tenants/0005_crossings.py."""

from django.db import migrations

# Revisions are made in the order of their numbers: where the next one is too young to begin with, all are.
CROSSING = """
CREATE FUNCTION memsvc_trees_to_prune(tenants uuid[], befores timestamptz[])
RETURNS TABLE (tree tree_tree, before timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT t, kept.before
    FROM unnest(tenants, befores) WITH ORDINALITY AS kept (tenant_id, before, place)
    JOIN tree_tree t ON t.tenant_id = kept.tenant_id
    WHERE (
        SELECT at FROM tree_revision r
        WHERE r.tenant_id = t.tenant_id AND r.tree_id = t.id AND r.number > t.history_from
        ORDER BY r.number LIMIT 1
    ) < kept.before
    OR EXISTS (
        SELECT FROM tree_block b
        WHERE b.tenant_id = t.tenant_id AND b.tree_id = t.id AND b.removed_in <= t.history_from
    )
    OR EXISTS (
        SELECT FROM tree_file f
        WHERE f.tenant_id = t.tenant_id AND f.tree_id = t.id AND f.removed_in <= t.history_from
    )
    ORDER BY kept.place, t.name
$$
"""


class Migration(migrations.Migration):
    dependencies = [("tree", "0012_run_id")]

    operations = [migrations.RunSQL(CROSSING, "DROP FUNCTION memsvc_trees_to_prune(uuid[], timestamptz[])")]
