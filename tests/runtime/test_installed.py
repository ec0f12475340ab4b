"""What of a plugin of another package is judged before it is loaded, and which are enabled."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

import serve_app
from runtime.api.operation import Read
from runtime.api.plugin import Job, Plugin, RegistryError
from runtime.installed import misnamed, owner_of
from runtime.settings import Section
from storage.indexes import BitmapIndex
from storage.store import Table
from tests.support.worlds import example_plugin, settings


def test_what_bears_the_name_of_its_plugin_is_well_named() -> None:
    assert list(misnamed(example_plugin())) == []


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (Plugin("Notes"), "the plugin's name 'Notes'"),
        (Plugin("notes", tables=(Table("note", key=("n",), row=bytes),)), "table 'note'"),
        (Plugin("notes", tables=(Table("notes", key=("n",), row=bytes),)), "table 'notes'"),
        (
            Plugin("notes", indexes=(BitmapIndex("memories.x", fields=("a",)),)),
            "index 'memories.x'",
        ),
        (Plugin("notes", jobs=(Job("sweep", print),)), "job 'sweep'"),
        (Plugin("notes", models={"tagger": print}), "model 'tagger'"),
        (
            Plugin("notes", operations=(Read("get", "GET", "/v1/n", print, "Get", None),)),
            "operation 'get'",
        ),
    ],
)
def test_what_does_not_bear_it_is_told(plugin: Plugin, says: str) -> None:
    (told,) = misnamed(plugin)
    assert told.startswith(says)


class Demanding(Section, frozen=True):
    must: int = Field(description="What nobody said.")


@pytest.mark.parametrize("section", [Demanding, dict])
def test_settings_that_nobody_has_to_write_have_defaults(section: Any) -> None:
    (told,) = misnamed(Plugin("notes", settings={"notes": section}))
    assert told.startswith(
        "the settings section 'notes' must be a Section with a default for each field"
    )


def test_a_table_tells_whose_it_is() -> None:
    assert owner_of("bookmarks.labels.bitmaps") == "bookmarks"
    assert owner_of("memories") == ""


def test_a_name_that_is_not_installed_is_refused() -> None:
    chosen = settings(plugins__enabled="nobody_has_this")
    assert chosen.plugins.enabled == ("nobody_has_this",)
    with pytest.raises(RegistryError, match="'nobody_has_this', which is not installed"):
        serve_app.registry(chosen)
    assert settings(plugins__enabled="[]").plugins.enabled == ()
    assert settings().plugins.enabled is None
