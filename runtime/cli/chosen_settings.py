"""The settings that arguments, environment and configuration file give a command together.

A command that starts, opens or judges the service reads all of them, for which the plugins have to
be imported. One that calls a running service, or copies its files, goes by the core's sections
alone: it starts in half the time, and leaves alone what file and environment say of other sections.
"""

from __future__ import annotations

import argparse
import importlib
import os
from typing import Any

from runtime.installed import installed
from runtime.settings import LOCAL_PROFILE, Settings, SettingsError, default_config


def core_settings(parsed: argparse.Namespace) -> Settings:
    """The core's sections. Raises SettingsError."""
    config = parsed.config or default_config(os.environ, LOCAL_PROFILE)
    try:
        return Settings.load(config, _overrides(parsed), os.environ, partial=True)
    except SettingsError:
        # --set may name a plugin's, and a name that is none may be nearest to one of a plugin.
        return service_settings(parsed)


def service_settings(parsed: argparse.Namespace) -> Settings:
    """Every section, those of the plugins included. Raises SettingsError."""
    service: Any = importlib.import_module("serve_app")
    config = parsed.config or default_config(os.environ, service.LOCAL_PROFILE)
    # What a plugin is told that could not be loaded keeps nobody from starting.
    partial = any(each.plugin is None for each in installed())
    return service.Settings.load(config, _overrides(parsed), os.environ, partial=partial)


def _overrides(parsed: argparse.Namespace) -> list[str]:
    """What --set says, and then the options that have names of their own."""
    flags = {
        "engine": "engine",
        "data_dir": "data_dir",
        "http.host": "host",
        "http.port": "port",
        "ray.address": "address",
        "ray.dashboard": "ray_dashboard",
    }
    given = [
        f"{name}={value}"
        for name, flag in flags.items()
        if (value := getattr(parsed, flag, None)) is not None
    ]
    return [*parsed.set, *given]
