from django.db import migrations, models

from memsvc.format import cut, metadata_of


def fill(apps, schema_editor):
    entries = apps.get_model("tree", "Block").objects.filter(kind="entry").only("pk", "head")
    for block in entries.iterator():
        for read in cut(block.head.encode()):
            if metadata := metadata_of(read.extra):
                block.metadata = metadata
                block.save(update_fields=["metadata"])


class Migration(migrations.Migration):

    dependencies = [
        ('tree', '0007_stays'),
    ]

    operations = [
        migrations.AddField(
            model_name='block',
            name='metadata',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
