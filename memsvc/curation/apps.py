from django.apps import AppConfig


class CurationConfig(AppConfig):
    name = "memsvc.curation"
    verbose_name = "curation"
