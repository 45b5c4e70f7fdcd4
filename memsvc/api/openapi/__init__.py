"""The description of the API: `/v1/openapi.json`, `docs/openapi.yaml` and the page `/v1/docs`."""
