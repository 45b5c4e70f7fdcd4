from django.db import migrations

from migrations.tenant_in_key import KeysWithTenant


class Migration(migrations.Migration):
    # Indexes are built without a transaction, beside whoever writes.
    atomic = False

    dependencies = [("tree", "0016_authors")]

    operations = [KeysWithTenant("tree_tree", "tree_revision", "tree_file", "tree_block", "tree_redaction", "tree_erasure")]
