"""Unrelated common messages; a trigger that matches most of them is too broad."""

from __future__ import annotations

from typing import Final

ERRORS: Final = (
    "TypeError: Cannot read properties of undefined (reading 'id')",
    "AssertionError: expected 200 to equal 404",
    "ModuleNotFoundError: No module named 'requests'",
    "error[E0382]: borrow of moved value: `config`",
    "ECONNREFUSED 127.0.0.1:5432",
    "SyntaxError: Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON",
    "Timeout of 5000ms exceeded. Ensure the done() callback is called",
    "permission denied while opening /var/log/app.log",
    "KeyError: 'customer_id'",
    "panic: runtime error: index out of range [3] with length 3",
    "npm ERR! peer dep missing: react@^18",
    "fatal: refusing to merge unrelated histories",
    "undefined reference to `pthread_create'",
    "java.lang.NullPointerException at com.acme.Orders.total(Orders.java:41)",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
    "deadlock detected: process 4711 waits for ShareLock",
    "No space left on device",
    "CORS policy: No 'Access-Control-Allow-Origin' header is present",
    "TS2345: Argument of type 'string' is not assignable to parameter of type 'number'",
    "OOMKilled: container exceeded its memory limit",
)
"""Error messages."""
TASKS: Final = (
    "Add a dark theme to the settings page",
    "Fix the flaky login test",
    "Write the release notes of version 2.4",
    "Move the session store from memory to Redis",
    "Speed up the monthly revenue report",
    "Rename the customer table and migrate its rows",
    "Upgrade the web framework to the next major version",
    "Document the public REST endpoints",
    "Remove the unused feature flags",
    "Encrypt backups before they are uploaded",
    "Let users export their invoices as CSV",
    "Find out why the nightly import takes six hours",
    "Draw the architecture of the billing service",
    "Replace the hand-written parser by a library",
    "Raise the coverage of the payments module to 80 %",
    "Translate the checkout into French",
)
"""Tasks of loops."""
