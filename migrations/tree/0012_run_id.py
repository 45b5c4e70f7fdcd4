from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tree', '0011_folding'),
    ]

    operations = [
        # The default stays in the database, so that an earlier release, which doesn't know the column, writes on.
        migrations.AddField(
            model_name='revision',
            name='run_id',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        # All revisions are looked at for it.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name='revision',
            index=models.Index(condition=models.Q(('run_id', ''), _negated=True), fields=['tenant', 'tree', 'run_id', 'number'], name='revision_of_run'),
        ),
    ]
