from django.db import migrations

from migrations.tenant_in_key import KeysWithTenant


class Migration(migrations.Migration):
    # Indexes are built without a transaction, beside whoever writes.
    atomic = False

    dependencies = [("tenants", "0008_idempotency_digests")]

    operations = [KeysWithTenant("tenants_storedanswer", "tenants_auditevent")]
