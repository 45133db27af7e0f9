"""Launchers that ``conf/hydra/launcher/`` describes are what it says."""

from __future__ import annotations

from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.plugins.search_path_plugin import SearchPathPlugin


class OwnLaunchers(SearchPathPlugin):
    """Takes launchers out of Hydra's store that a program describes by files of the same name.

    Hydra would take the store's ``submitit_slurm``, which is there if ``hydra-submitit-launcher``
    is installed, for the schema of ours.
    """

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra when all plugins are known and nothing has been composed."""
        registered = ConfigStore.instance().repo.get("hydra", {}).get("launcher", {})
        for element in search_path.get_path():
            if element.provider == "main" and element.path is not None:
                for file in (Path(element.path) / "hydra" / "launcher").glob("*.yaml"):
                    registered.pop(file.name, None)
