"""A store as the memory of other frameworks; each module needs the package it is named after."""

from __future__ import annotations
