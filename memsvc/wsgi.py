import os

from django.core.wsgi import get_wsgi_application

from memsvc import local

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memsvc.settings")
local.prepare()
application = get_wsgi_application()
