from django.apps import AppConfig


class ServiceConfig(AppConfig):
    name = "memsvc"
    label = "memsvc"

    def ready(self) -> None:
        from memsvc import checks  # noqa: F401  registers the system checks
