"""Two agents that read the same text and both correct it: the slower one is told, and nothing is lost."""

import pytest

from memsvc.testing import fresh_backend

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_edit_of_text_that_has_changed_is_a_message_and_no_write() -> None:
    memory = fresh_backend()
    memory.write("/facts.md", "ACME is on the Team plan.\nACME is in Berlin.\n")

    faster = memory.edit("/facts.md", "on the Team plan", "on the Enterprise plan")
    slower = memory.edit("/facts.md", "on the Team plan", "on the Free plan")
    elsewhere = memory.edit("/facts.md", "in Berlin", "in Bonn")

    assert (faster.error, elsewhere.error) == (None, None)
    assert slower.error is not None
    assert "String not found" in slower.error
    read = memory.read("/facts.md").file_data
    assert read is not None
    assert read["content"] == "ACME is on the Enterprise plan.\nACME is in Bonn.\n"
