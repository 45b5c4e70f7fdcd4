from django.db import migrations

from migrations.tenant_in_key import KeysWithTenant


class Migration(migrations.Migration):
    # Indexes are built without a transaction, beside whoever writes.
    atomic = False

    dependencies = [("recall", "0005_crossings")]

    operations = [KeysWithTenant("recall_vector", "recall_embeddedtree", "recall_accesscount")]
