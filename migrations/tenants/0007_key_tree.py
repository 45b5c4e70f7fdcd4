"""A key that was limited to the name of a tree is limited to the tree that has the name now.

One for whose name there is no tree keeps its limit, and opens nothing.
"""

from django.db import migrations, models

BIND = """
UPDATE tenants_apikey key SET tree_id = tree.id
FROM tree_tree tree
WHERE key.tree <> '' AND key.tree_id IS NULL
AND tree.tenant_id = key.tenant_id AND tree.name = key.tree COLLATE "C"
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_audit"), ("tree", "0012_run_id")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="tree_id",
            field=models.UUIDField(blank=True, editable=False, null=True),
        ),
        migrations.RunSQL(BIND, migrations.RunSQL.noop),
    ]
