from django.apps import AppConfig


class TreeConfig(AppConfig):
    name = "memsvc.tree"
    label = "tree"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"
