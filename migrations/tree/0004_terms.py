from django.db import migrations, models

from memsvc.tree import models as tree_models
from memsvc.tree import statements

# Columns that no model knows: a ranking reads them, and every other SELECT leaves them where they are.
COLUMNS = """
    ALTER TABLE tree_block ADD COLUMN tsv tsvector;
    ALTER TABLE tree_block ADD COLUMN words integer GENERATED ALWAYS AS (length(tsv)) STORED;
    CREATE INDEX block_terms ON tree_block USING gin (tree_id, tsv) WHERE removed_in IS NULL AND kind = 'entry';
"""
NO_COLUMNS = """
    ALTER TABLE tree_block DROP COLUMN words;
    ALTER TABLE tree_block DROP COLUMN tsv;
"""


def fill(apps, schema_editor):
    for block in apps.get_model("tree", "Block").objects.filter(kind="entry").iterator():
        statements.set_terms(block, language="english")


class Migration(migrations.Migration):

    dependencies = [
        ('tree', '0003_archive'),
    ]

    operations = [
        migrations.AddField(
            model_name='tree',
            name='language',
            field=models.CharField(choices=[(name, name) for name in tree_models.LANGUAGES], default='english', max_length=16),
        ),
        migrations.RunSQL(COLUMNS, NO_COLUMNS),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
