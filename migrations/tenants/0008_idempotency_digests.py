"""What was kept of Idempotency-Keys becomes keyed digests, so that requests that were made before are known still."""

from django.db import migrations

from tenants.secrets import keyed_digest


def keep_digests(apps, schema_editor):
    answers = apps.get_model("tenants", "StoredAnswer").objects.using(schema_editor.connection.alias)
    for answer in answers.only("key", "fingerprint").order_by("pk").iterator(chunk_size=1000):
        # One that was redacted has no fingerprint, and must not get one.
        fingerprint = answer.fingerprint and keyed_digest(answer.fingerprint)
        answers.filter(pk=answer.pk).update(key=keyed_digest(answer.key), fingerprint=fingerprint)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_key_tree")]

    operations = [migrations.RunPython(keep_digests, migrations.RunPython.noop)]
