import os

from django.core.asgi import get_asgi_application

from memsvc import local

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memsvc.settings")
local.prepare()
application = get_asgi_application()
