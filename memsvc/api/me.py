from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer, me
from memsvc.api.serializers import MAX_ITEMS
from memsvc.api.views import TenantView
from memsvc.contract.requests import MAX_PAGE
from memsvc.tree.files import MAX_FILE_BYTES
from memsvc.tree.services import MAX_BATCH
from tenants.scopes import Scope


class MeView(TenantView):
    """Whose key this is, what it may do and how much it may send."""

    scopes = {"GET": Scope.READ}

    def get(self, request: Request) -> Response:
        limits = {
            "max_body_bytes": settings.MAX_BODY_BYTES,
            "max_import_bytes": settings.MAX_IMPORT_BYTES,
            "max_file_bytes": MAX_FILE_BYTES,
            "max_batch": MAX_BATCH,
            "max_page": MAX_PAGE,
            "max_items": MAX_ITEMS,
            "history_days": self.caller.tenant.history_days,
        }
        return answer(me(self.caller, limits))
