"""Where Django looks for the pages of the admin."""

from django.contrib import admin

from memsvc.curation import memory, tenancy

admin.site.site_header = "memsvc"
admin.site.site_title = "memsvc"
admin.site.index_title = "Memory of your tenants"
admin.site.site_url = None

__all__ = ["memory", "tenancy"]
