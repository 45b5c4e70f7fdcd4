from django.apps import AppConfig


class RecallConfig(AppConfig):
    name = "memsvc.recall"
    label = "recall"
