from itertools import batched

from django.db import migrations, transaction

from memsvc.format.terms import search_text, tag_keys
from memsvc.tree import statements
from memsvc.tree.blocks import entry_of

ROWS_AT_ONCE = 500


def fill(apps, schema_editor):
    """Make anew what entries are found by, where it is more than ASCII: that is folded as before."""
    trees, blocks = apps.get_model("tree", "Tree").objects, apps.get_model("tree", "Block").objects
    for tree in trees.order_by("pk").iterator():
        mine = blocks.filter(tenant_id=tree.tenant_id, tree_id=tree.pk)
        found = mine.filter(kind="entry", search_text__regex="[^[:ascii:]]").order_by().iterator(ROWS_AT_ONCE)
        for piece in batched(found, ROWS_AT_ONCE):
            with transaction.atomic():
                # Writers count the words of the rows that they close.
                trees.select_for_update(no_key=True).get(pk=tree.pk)
                for block in piece:
                    entry = entry_of(block)
                    mine.filter(pk=block.pk).update(search_text=search_text(entry), tag_keys=tag_keys(entry.tags))
                    statements.set_terms(block, language=tree.language)
                statements.count_entries(tree)


class Migration(migrations.Migration):

    # In pieces: a tree is written on between them.
    atomic = False

    dependencies = [
        ('tree', '0010_estimates'),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
