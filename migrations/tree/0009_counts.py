from django.db import migrations, models

COUNT = """
    UPDATE tree_tree t SET entry_count = c.entries, term_count = c.terms FROM (
        SELECT tenant_id, tree_id, count(*) AS entries, coalesce(sum(words), 0) AS terms FROM tree_block
        WHERE removed_in IS NULL AND kind = 'entry' AND expires_at IS NULL AND superseded_by = ''
        GROUP BY tenant_id, tree_id
    ) c WHERE t.tenant_id = c.tenant_id AND t.id = c.tree_id
"""


class Migration(migrations.Migration):

    dependencies = [
        ('tree', '0007_stays'),
    ]

    operations = [
        migrations.AddField(
            model_name='tree',
            name='entry_count',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='tree',
            name='term_count',
            field=models.BigIntegerField(default=0),
        ),
        migrations.RunSQL(COUNT, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name='block',
            index=models.Index(condition=models.Q(('removed_in__isnull', True), ('expires_at__isnull', False), ('kind', 'entry')), fields=['tenant', 'tree'], name='block_expiring_entry'),
        ),
    ]
