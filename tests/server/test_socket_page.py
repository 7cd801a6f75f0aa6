from __future__ import annotations

import pytest
from socket_page import METHOD_PAGE, SETTINGS_PAGE, tables, written

from engram.server import failures
from engram.server.settings import VARIABLES


@pytest.mark.parametrize("page", [METHOD_PAGE, SETTINGS_PAGE], ids=lambda page: page.stem)
def test_the_tables_are_those_of_the_program(page):
    assert written(page) == tables(page), "run python tests/socket_page.py"


def test_every_number_that_is_sent_is_explained():
    page = METHOD_PAGE.read_text(encoding="utf-8")
    sent = {name: value for name, value in vars(failures).items() if isinstance(value, int)}
    assert sent
    assert [name for name, value in sent.items() if str(value) not in page] == []


def test_every_variable_is_explained():
    page = SETTINGS_PAGE.read_text(encoding="utf-8")
    assert [name for name in VARIABLES if name not in page] == []
