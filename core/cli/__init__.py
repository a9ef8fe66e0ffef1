"""The command line of ralphdeck without a screen.

`commands` parse the arguments, `json` has the JSON output, `render` the text output, and `support` what commands share.
The program `ralphdeck` is `tui.__main__`, which adds the dashboard. Nothing is imported here: hooks need little of it.
"""
