from django.db import migrations

# A tree is of one tenant, so tenant_id says nothing of a row that tree_id or file_id doesn't say. The planner doesn't
# know: it multiplies what both leave, takes any index that begins with them for a look-up of one row, and reads all of
# a tree that is much larger than the others. By this tenant_id counts for nothing; ANALYZE brings it into effect.
TABLES = ("tree_tree", "tree_file", "tree_block", "tree_revision", "tree_redaction")


class Migration(migrations.Migration):

    dependencies = [
        ('tree', '0009_counts'),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        *(
            migrations.RunSQL(
                f"ALTER TABLE {table} ALTER tenant_id SET (n_distinct = 1); ANALYZE {table}",
                f"ALTER TABLE {table} ALTER tenant_id RESET (n_distinct); ANALYZE {table}",
            )
            for table in TABLES
        ),
    ]
