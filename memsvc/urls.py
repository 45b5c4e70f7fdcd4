from django.contrib import admin
from django.urls import include, path

from memsvc.api.openapi.pages import docs, openapi_json
from memsvc.security_txt import security_txt

# /healthz and /readyz are answered before any URL is looked at: memsvc.health.
urlpatterns = [
    path("admin/", admin.site.urls),
    path(".well-known/security.txt", security_txt, name="security.txt"),
    path("v1/openapi.json", openapi_json, name="openapi"),
    path("v1/docs", docs, name="docs"),
    path("", include("memsvc.api.urls")),
]

handler400 = "memsvc.api.problems.bad_request"
handler403 = "memsvc.api.problems.permission_denied"
handler404 = "memsvc.api.problems.not_found"
handler500 = "memsvc.api.problems.server_error"
