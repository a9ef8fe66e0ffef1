"""The terminal driver, made to live with what terminals send."""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver


class PatientDriver(LinuxDriver):
    """Passes over bytes that are no UTF-8: a paste in another encoding, noise on the line.

    Textual's own driver ends the app on the first one.
    """

    def run_input_thread(self) -> None:
        """Read keys until the app ends."""
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except UnicodeDecodeError:
                continue
