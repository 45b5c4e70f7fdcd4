import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memsvc.recall.accesses import ACCESS_COUNTS, note_accesses
from memsvc.tree.access import Access
from tenants.actors import SYSTEM
from tenants.models import ApiKey, Membership, Tenant, User
from tests.curation.conftest import House
from tests.people import opening
from tests.tree.support import from_outside

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = (
    *("tenants_tenant", "tenants_membership", "tenants_apikey"),
    *("tree_tree", "tree_file", "curation_entry", "tree_revision"),
)
NAMES = pytest.mark.parametrize("page", PAGES)


def listing(page: str) -> str:
    return reverse(f"admin:{page}_changelist")


def detail(page: str, obj: Any, view: str = "change") -> str:
    return reverse(f"admin:{page}_{view}", args=[obj.pk])


def text(answer: Any) -> str:
    return str(answer.content.decode())


def rows_of(answer: Any) -> list[str]:
    """The pages that the rows of a list lead to."""
    assert answer.status_code == 200
    return re.findall(r'<th class="field-[^>]*><a href="([^"?]*)', text(answer))


# Who sees what


@NAMES
def test_a_superuser_sees_every_tenant(root: Client, alice: House, bob: House, page: str) -> None:
    seen = text(root.get(listing(page)))

    for house in (alice, bob):
        assert str(house.objects[page].pk) in seen
        assert root.get(detail(page, house.objects[page])).status_code == 200


@NAMES
def test_a_moderator_sees_only_their_tenants(moderator: Client, alice: House, bob: House, page: str) -> None:
    seen = moderator.get(listing(page))

    assert seen.status_code == 200
    assert detail(page, alice.objects[page]) in text(seen)
    assert str(bob.objects[page].pk) not in text(seen)
    assert "builder" not in text(seen)
    assert bob.tenant.slug not in text(seen)
    assert moderator.get(detail(page, alice.objects[page])).status_code == 200


@NAMES
@pytest.mark.parametrize("view", ["change", "history", "delete"])
def test_nothing_of_another_tenant_opens(moderator: Client, bob: House, page: str, view: str) -> None:
    foreign = detail(page, bob.objects[page], view)
    unknown = reverse(f"admin:{page}_{view}", args=[uuid4()])

    for query in (
        "",
        "?_to_field=tenant",
        "?_to_field=id",
        f"?_changelist_filters=tenant%3D{bob.tenant.slug}",
    ):
        for url in (foreign, unknown):
            assert moderator.get(url + query).status_code == 404
            assert moderator.post(url + query, {"post": "yes", "name": "mine"}).status_code in (403, 404)
        assert text(moderator.get(foreign + query)) == text(moderator.get(unknown + query))


@NAMES
@pytest.mark.parametrize(
    "query",
    [
        *(
            "q={slug}",
            "q={id}",
            "q=builder",
            "tenant={slug}",
            "tenant={id}",
            "tenant=wonderland&tenant={slug}",
        ),
        *("tenant__id__exact={id}", "tenant={slug}&q=builder", "tenant__slug__startswith=b", "pk={id}"),
        *("id__in={id}", "tenant_id={id}", "tree__tenant={id}", "tenant__isnull=0", "_to_field=tenant"),
        *("created_at__year=2026", "at__gte=2000-01-01", "tenant__=1", "__=1", "=1"),
    ],
)
def test_no_list_tells_of_another_tenant(moderator: Client, bob: House, page: str, query: str) -> None:
    """What a list answers for a tenant that is foreign, it answers for one that there isn't."""
    foreign, unknown = (
        moderator.get(f"{listing(page)}?{query.format(slug=slug, id=identifier)}")
        for slug, identifier in ((bob.tenant.slug, bob.tenant.pk), ("none-at-all", uuid4()))
    )

    assert foreign.status_code == unknown.status_code
    if foreign.status_code != 404:
        assert rows_of(foreign) == rows_of(unknown)
        # Members can't be searched for: the list of one's own stays as it is.
        assert rows_of(foreign) == [] or (page, query[:2]) == ("tenants_membership", "q=")
    # The words that were asked for may come back in a message; nothing else does.
    assert not re.search("(summary|body|key|person) of builder|/builder", text(foreign))


@pytest.mark.parametrize("page", [page for page in PAGES if page != "tenants_tenant"])
def test_the_lists_are_filtered_by_tenant(
    root: Client, moderator: Client, alice: House, bob: House, page: str
) -> None:
    wanted = {detail(page, alice.objects[page])}
    everything = wanted | {detail(page, bob.objects[page])}

    assert everything <= set(rows_of(root.get(listing(page))))
    assert f"?tenant={alice.tenant.slug}" in text(root.get(listing(page)))
    for client in (root, moderator):
        shown = set(rows_of(client.get(f"{listing(page)}?tenant={alice.tenant.slug}")))
        assert shown & everything == wanted
    for none in ("nobody", str(alice.tenant.pk), "", "a" * 5000, "Ä"):
        assert rows_of(root.get(f"{listing(page)}?tenant={none}")) == []


@NAMES
def test_who_is_a_member_of_nothing_sees_nothing(nobody: Client, alice: House, page: str) -> None:
    assert nobody.get(listing(page)).status_code == 403
    assert nobody.get(detail(page, alice.objects[page])).status_code == 404


@NAMES
def test_strangers_are_sent_to_the_login(client: Client, alice: House, page: str) -> None:
    for url in (listing(page), detail(page, alice.objects[page])):
        answer = client.get(url)
        assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (302, "/admin/login/")


@NAMES
def test_nothing_is_changed_or_deleted_by_hand(root: Client, alice: House, page: str) -> None:
    obj = alice.objects[page]

    for view in ("change", "delete"):
        assert (
            root.post(detail(page, obj, view), {"post": "yes", "name": "x", "slug": "x"}).status_code == 403
        )
    if page not in ("tenants_tenant", "tenants_membership", "tenants_apikey"):
        assert root.get(reverse(f"admin:{page}_add")).status_code == 403


@NAMES
@pytest.mark.parametrize(
    "query",
    [
        *(
            "o=99",
            "o=x",
            "o=-1",
            "o=1.2.3",
            "o=.",
            f"o={'9' * 20}",
            "p=-1",
            "p=x",
            "p=1.5",
            "p=99",
            f"p={'9' * 20}",
        ),
        *("e=1", "all=x", "all=", "q=%22a", "q=" + "a%20" * 500, "q=" + "a" * 5000, "_popup=x", "_facets=x"),
    ],
)
def test_a_query_that_makes_no_sense_is_no_fault(root: Client, alice: House, page: str, query: str) -> None:
    assert root.get(f"{listing(page)}?{query}").status_code == 200


@NAMES
@pytest.mark.parametrize(
    "query",
    [
        *("path=%00", "q=%00", "q=%ED%A0%80", "o=%00", "p=%00", "tenant=%00", "tenant=%FF", "%00=1"),
        *("digest__startswith=a", "id__exact=x", "at__year=x", "_to_field=x", "_to_field=%00"),
    ],
)
def test_a_query_for_what_there_is_not_is_not_found(
    root: Client, alice: House, page: str, query: str
) -> None:
    answer = root.get(f"{listing(page)}?{query}")

    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "text/html; charset=utf-8")


@NAMES
@pytest.mark.parametrize("identifier", ["%00", "0", "9" * 100, "%ED%A0%80", "x", "../../"])
def test_an_id_that_is_none_is_no_fault(root: Client, alice: House, page: str, identifier: str) -> None:
    for view in ("change", "history", "delete"):
        assert root.get(f"{listing(page)}{identifier}/{view}/").status_code == 404


def test_no_column_can_be_asked_for_letter_by_letter(root: Client, alice: House) -> None:
    for lookup in (
        "digest__startswith",
        "digest",
        "tenant__keys__digest__startswith",
        "created_by__password",
    ):
        assert root.get(f"{listing('tenants_apikey')}?{lookup}=a").status_code == 404


def test_people_are_for_superusers(root: Client, owner: Client) -> None:
    user = User.objects.get(username="root")

    assert root.get(detail("tenants_user", user)).status_code == 200
    for url in (listing("tenants_user"), reverse("admin:tenants_user_add")):
        assert owner.get(url).status_code == 403
    for url in (detail("tenants_user", user), reverse("admin:tenants_user_change", args=[user.pk + 1000])):
        assert owner.get(url).status_code == 404
    assert root.get(f"{listing('tenants_user')}?password__startswith=a").status_code == 404


def test_the_login_page_opens_for_everyone(client: Client, transactional_db: None) -> None:
    assert client.get("/admin/login/").status_code == 200


def test_who_is_no_longer_of_the_staff_is_let_out(owner: Client, alice: House) -> None:
    User.objects.filter(username="owner").update(is_active=False)

    assert owner.get(listing("tenants_apikey")).status_code == 302


# Memory


def test_a_file_is_shown_as_plain_text(moderator: Client, alice: House) -> None:
    shown = text(moderator.get(detail("tree_file", alice.file)))

    assert "<pre>&lt;script&gt;alert(&#x27;wonderland&#x27;)&lt;/script&gt;" in shown
    assert "<script>alert" not in shown


def test_an_entry_is_shown_as_it_is_written(moderator: Client, alice: House) -> None:
    shown = text(moderator.get(detail("curation_entry", alice.entry)))

    assert "body of wonderland" in shown
    assert f"id: {alice.entry.entry_id}" in shown


def test_an_entry_tells_how_often_it_was_read(moderator: Client, alice: House) -> None:
    page = detail("curation_entry", alice.entry)
    assert "never" in text(moderator.get(page))
    note_accesses(Access(alice.tree, SYSTEM), [alice.entry.entry_id] * 2)
    ACCESS_COUNTS.flush()

    assert f"2 times, last {timezone.now():%Y-%m-%d}" in text(moderator.get(page))
    assert f"2 times, last {timezone.now():%Y-%m-%d}" in text(moderator.get(page))


def test_a_revision_tells_who_and_why(moderator: Client, alice: House) -> None:
    shown = text(moderator.get(detail("tree_revision", alice.revision)))

    assert "file.write" in shown
    assert "key of wonderland" in shown


# Tenants and members


def choose(client: Client, page: str, action: str, *objects: Any, **fields: str) -> Any:
    selected = [obj.pk for obj in objects]
    return client.post(listing(page), {"action": action, "_selected_action": selected, **fields})


def test_a_superuser_makes_a_tenant(root: Client) -> None:
    url = reverse("admin:tenants_tenant_add")

    made = root.post(url, {"slug": "acme", "name": "Acme, Inc."})
    again = root.post(url, {"slug": "acme", "name": "Acme, Inc."})

    assert made.status_code == 302
    assert "choose another slug" in text(again)
    assert "no slug" in text(root.post(url, {"slug": "No Slug"}))
    with from_outside():
        assert Tenant.objects.get(slug="acme").name == "Acme, Inc."


def test_a_superuser_suspends_and_resumes(root: Client, alice: House) -> None:
    choose(root, "tenants_tenant", "suspend", alice.tenant)
    assert opening(alice.key_text) is None

    choose(root, "tenants_tenant", "resume", alice.tenant)
    assert opening(alice.key_text) is not None


@pytest.mark.parametrize("selected", ["", "x", "\0", b"\xed\xa0\x80", "9" * 50])
def test_what_is_no_row_cannot_be_selected(
    root: Client, owner: Client, alice: House, selected: str | bytes
) -> None:
    for page, action in (
        ("tenants_tenant", "suspend"),
        ("tenants_membership", "remove"),
        ("tenants_apikey", "revoke"),
    ):
        fields = {"action": action, "_selected_action": selected}
        assert root.post(listing(page), fields).status_code == 404
        assert owner.post(listing(page), fields).status_code in (200, 302, 404)


def test_a_superuser_says_how_long_history_is_kept(root: Client, alice: House, bob: House) -> None:
    asked = choose(root, "tenants_tenant", "keep_history", alice.tenant)
    assert alice.tenant.slug in text(asked)
    refused = choose(root, "tenants_tenant", "keep_history", alice.tenant, confirmed="Save", days="0")
    assert "greater than or equal to 1" in text(refused)
    assert days_kept(alice) is None

    choose(root, "tenants_tenant", "keep_history", alice.tenant, confirmed="Save", days="30")
    assert (days_kept(alice), days_kept(bob)) == (30, None)

    choose(root, "tenants_tenant", "keep_history", alice.tenant, confirmed="Save", days="")
    assert days_kept(alice) is None


def days_kept(house: House) -> int | None:
    with from_outside():
        return Tenant.objects.get(pk=house.tenant.pk).history_days


def test_a_superuser_manages_members(root: Client, alice: House) -> None:
    user = User.objects.get(username="root")
    data = {"tenant": alice.tenant.pk, "user": user.pk, "role": "moderator"}

    root.post(reverse("admin:tenants_membership_add"), data)
    with from_outside():
        membership = Membership.objects.get(user=user)
    assert membership.role == "moderator"

    choose(root, "tenants_membership", "remove", membership)
    with from_outside():
        assert not Membership.objects.filter(user=user).exists()


def test_an_owner_manages_neither_tenants_nor_members(owner: Client, alice: House) -> None:
    for page in ("tenants_tenant", "tenants_membership"):
        assert owner.get(reverse(f"admin:{page}_add")).status_code == 403
    choose(owner, "tenants_tenant", "suspend", alice.tenant)
    choose(owner, "tenants_tenant", "keep_history", alice.tenant, confirmed="Save", days="1")
    choose(owner, "tenants_membership", "remove", alice.membership)

    with from_outside():
        alice.tenant.refresh_from_db()
        assert Membership.objects.filter(pk=alice.membership.pk).exists()
    assert (alice.tenant.is_suspended, alice.tenant.history_days) == (False, None)


# Keys


def key_form(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    return {
        "tenant": tenant.pk,
        "name": "made here",
        "scopes": ["read"],
        "tree": "",
        "path_prefix": "/",
        **fields,
    }


def new_key_in(answer: Any) -> str | None:
    found = re.search(r"msk_\w{8}_\w{49}", text(answer))
    return found[0] if found else None


def test_an_owner_makes_a_key_and_sees_it_once(owner: Client, alice: House) -> None:
    made = owner.post(reverse("admin:tenants_apikey_add"), key_form(alice.tenant, scopes=["read", "write"]))
    shown = new_key_in(made)
    assert shown is not None
    key = opening(shown)

    assert key is not None
    assert (key.tenant, key.scopes, key.created_by) == (
        alice.tenant,
        ["read", "write"],
        User.objects.get(username="owner"),
    )
    assert "no-store" in made.headers["Cache-Control"]
    for url in (
        listing("tenants_apikey"),
        detail("tenants_apikey", key),
        detail("tenants_apikey", key, "history"),
        "/admin/",
    ):
        assert new_key_in(owner.get(url)) is None
    assert not any("msk_" in str(value) for value in [*owner.session.values(), *owner.cookies.values()])


def test_the_hash_of_a_key_is_nowhere(root: Client, alice: House) -> None:
    for url in (listing("tenants_apikey"), detail("tenants_apikey", alice.key)):
        assert alice.key.digest not in text(root.get(url))


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"name": ""}, "required"),
        ({"name": "a\x00"}, "Null characters"),
        ({"scopes": []}, "required"),
        ({"scopes": ["root"]}, "not one of the available choices"),
        ({"path_prefix": "/../up"}, "segment"),
        ({"tree": "later"}, "no tree named"),
        ({"expires_at": "2001-01-01 00:00"}, "past"),
        ({"expires_at": "soon"}, "valid date"),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(
    owner: Client, alice: House, fields: dict[str, Any], hint: str
) -> None:
    answer = owner.post(reverse("admin:tenants_apikey_add"), key_form(alice.tenant, **fields))

    assert (answer.status_code, hint in text(answer)) == (200, True)
    with from_outside():
        assert ApiKey.objects.count() == 1


def test_nobody_makes_a_key_of_a_tenant_that_is_not_theirs(
    owner: Client, moderator: Client, alice: House, bob: House
) -> None:
    url = reverse("admin:tenants_apikey_add")

    assert "not one of the available choices" in text(owner.post(url, key_form(bob.tenant)))
    assert bob.tenant.slug not in text(owner.get(url))
    assert moderator.post(url, key_form(alice.tenant)).status_code == 403
    with from_outside():
        assert ApiKey.objects.count() == 2


def test_an_owner_revokes_the_keys_of_their_tenant(
    owner: Client, moderator: Client, alice: House, bob: House
) -> None:
    choose(moderator, "tenants_apikey", "revoke", alice.key)
    assert opening(alice.key_text) is not None

    choose(owner, "tenants_apikey", "revoke", alice.key, bob.key)
    assert opening(alice.key_text) is None
    assert opening(bob.key_text) is not None
