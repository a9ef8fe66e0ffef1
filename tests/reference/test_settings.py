"""The settings page is current."""

from tests.reference.settings import PAGE, render_page


def test_settings_page_is_generated_from_the_current_declarations() -> None:
    assert PAGE.read_text() == render_page(), "run: python -m tests.reference.settings"
