from django.apps import AppConfig


class TransferConfig(AppConfig):
    name = "memsvc.transfer"
    label = "transfer"
