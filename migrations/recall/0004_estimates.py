from django.db import migrations

# As in the tree's migration of this name.
TABLES = ("recall_vector", "recall_embeddedtree", "recall_accesscount")


class Migration(migrations.Migration):

    dependencies = [
        ('recall', '0003_near'),
        ('tree', '0010_estimates'),
    ]

    operations = [
        # Begins as the unique one does, and was taken in its place.
        migrations.RemoveIndex(model_name='vector', name='vector_of_model'),
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        *(
            migrations.RunSQL(
                f"ALTER TABLE {table} ALTER tenant_id SET (n_distinct = 1); ANALYZE {table}",
                f"ALTER TABLE {table} ALTER tenant_id RESET (n_distinct); ANALYZE {table}",
            )
            for table in TABLES
        ),
    ]
