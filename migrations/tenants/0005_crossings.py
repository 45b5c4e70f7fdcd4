"""What reaches across tenants, for who doesn't know yet whose rows are meant, or looks after those of all.

They are the owner's, whom policies show every row, and give away no more than they have to. Why each is there is told in
docs/threat-model.md.
"""

from django.db import migrations

CROSSINGS = {
    "memsvc_key(wanted text)": (
        "TABLE (tenant tenants_tenant, key tenants_apikey)",
        "SELECT t, k FROM tenants_apikey k JOIN tenants_tenant t ON t.id = k.tenant_id WHERE k.prefix = wanted",
    ),
    "memsvc_tenants()": ("SETOF tenants_tenant", "SELECT * FROM tenants_tenant ORDER BY slug"),
    "memsvc_memberships(person bigint)": (
        "TABLE (tenant_id uuid, role text)",
        "SELECT tenant_id, role FROM tenants_membership WHERE user_id = person",
    ),
}


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_history_days")]

    operations = [
        migrations.RunSQL(
            f"CREATE FUNCTION {crossing} RETURNS {gives} LANGUAGE sql STABLE SECURITY DEFINER"
            f" SET search_path = pg_catalog, public, pg_temp AS $$ {body} $$",
            f"DROP FUNCTION {crossing}",
        )
        for crossing, (gives, body) in CROSSINGS.items()
    ]
