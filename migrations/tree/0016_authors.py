from django.db import migrations, models

ROWS_AT_ONCE = 500

# Nobody can tell any more what a tree's removed history said of these: they stand since a time before its horizon, and
# what wrote them may as well have been a change of older ones. Only to add an entry makes a new one for sure.
UNKNOWN = """
UPDATE tree_block SET first_in = 0 WHERE tenant_id = %(tenant)s AND id IN (
    SELECT id FROM tree_block
    WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND kind = 'entry' AND first_in IS NULL
      AND added_in <= %(horizon)s AND added_in IN (
          SELECT number FROM tree_revision
          WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND number <= %(horizon)s
            AND action NOT IN ('entry.add', 'entry.supersede')
      )
    LIMIT %(most)s
)
"""
# Entries by their ids, of those that have more than one row: few of a large tree.
AGAIN = """
SELECT entry_id, min(coalesce(first_in, added_in)) FROM tree_block
WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND kind = 'entry' AND entry_id > %(after)s COLLATE "C"
GROUP BY entry_id HAVING count(*) > 1 ORDER BY entry_id LIMIT %(most)s
"""
FIRST = """
UPDATE tree_block b SET first_in = found.first
FROM unnest(%(ids)s::text[], %(firsts)s::bigint[]) AS found (entry_id, first)
WHERE b.tenant_id = %(tenant)s AND b.tree_id = %(tree)s AND b.kind = 'entry'
  AND b.entry_id = found.entry_id COLLATE "C" AND b.added_in > found.first AND b.first_in IS NULL
"""
AHEAD = """
UPDATE tree_block b SET claimed = b.created, created = ahead.at FROM (
    SELECT b.id, r.at FROM tree_block b
    JOIN tree_revision r ON r.tenant_id = b.tenant_id AND r.tree_id = b.tree_id AND r.number = b.added_in
    WHERE b.tenant_id = %(tenant)s AND b.tree_id = %(tree)s AND b.kind = 'entry' AND b.created > r.at LIMIT %(most)s
) AS ahead WHERE b.tenant_id = %(tenant)s AND b.id = ahead.id
"""
BACK = """
UPDATE tree_block SET created = claimed, claimed = NULL WHERE tenant_id = %(tenant)s AND id IN (
    SELECT id FROM tree_block
    WHERE tenant_id = %(tenant)s AND tree_id = %(tree)s AND kind = 'entry' AND claimed IS NOT NULL LIMIT %(most)s
)
"""


def fill(apps, schema_editor):
    """Say of what stands already when it came first, and by what it is ordered. Each piece is a transaction."""
    trees = apps.get_model("tree", "Tree").objects.order_by("pk").values_list("tenant_id", "pk", "history_from")
    for tenant, tree, horizon in trees:
        values = {"tenant": tenant, "tree": tree, "horizon": horizon, "most": ROWS_AT_ONCE, "after": ""}
        with schema_editor.connection.cursor() as cursor:
            for statement in (UNKNOWN, AHEAD) if horizon else (AHEAD,):
                cursor.execute(statement, values)
                while cursor.rowcount:
                    cursor.execute(statement, values)
            cursor.execute(AGAIN, values)
            while found := cursor.fetchall():
                ids, firsts = map(list, zip(*found, strict=True))
                cursor.execute(FIRST, values | {"ids": ids, "firsts": firsts})
                values["after"] = ids[-1]
                cursor.execute(AGAIN, values)


def give_back(apps, schema_editor):
    """Let entries be ordered by what they say again."""
    for tenant, tree in apps.get_model("tree", "Tree").objects.order_by("pk").values_list("tenant_id", "pk"):
        values = {"tenant": tenant, "tree": tree, "most": ROWS_AT_ONCE}
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(BACK, values)
            while cursor.rowcount:
                cursor.execute(BACK, values)


class Migration(migrations.Migration):

    # In pieces: a tree is written on between them.
    atomic = False

    dependencies = [
        ('tree', '0015_erasure'),
    ]

    operations = [
        migrations.AddField(
            model_name='block',
            name='claimed',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='block',
            name='first_in',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='block',
            name='changed_in',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        # Of a tree of millions of entries a single look takes longer than statements may.
        migrations.RunSQL("SET statement_timeout = 0", "RESET statement_timeout"),
        migrations.RunPython(fill, give_back),
        migrations.RunSQL("RESET statement_timeout", "SET statement_timeout = 0"),
        # It has the columns that are to go, and comes back by itself.
        migrations.RunSQL(migrations.RunSQL.noop, "DROP VIEW IF EXISTS tree_block_of_tenant"),
    ]
