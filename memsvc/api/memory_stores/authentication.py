from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from tenants.authentication import KeyAuthentication, key_with_text
from tenants.models import ApiKey


class EitherHeaderAuthentication(KeyAuthentication):
    """A key as `x-api-key`, or as `Authorization: Bearer`; not both, so that nobody guesses which one counts."""

    def key_in(self, request: Request) -> ApiKey | None:
        alone = request.META.get("HTTP_X_API_KEY")
        if alone is None:
            return super().key_in(request)
        if "HTTP_AUTHORIZATION" in request.META:
            raise AuthenticationFailed("Send one credential: either x-api-key or Authorization.")
        return key_with_text(alone)
