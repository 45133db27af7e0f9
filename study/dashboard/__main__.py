"""``python -m study.dashboard runs/quickstart``: Optuna Dashboard on a sweep, in a browser.

It reads the sweep's Optuna storage, also while workers write it, and changes nothing: attempts to
delete, rename or add a study are refused.
"""

from __future__ import annotations

import argparse
import ipaddress
import sys
import webbrowser
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from study.cli import reporting_user_errors
from study.dashboard.view import ReadOnlyView
from study.dashboard.web import guarded
from study.records.store import ExperimentStore
from study.sweep.claims.storage import Storage
from study.sweep.schedule import read_plan


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """The dashboard asks every few seconds."""


def view_of(store: ExperimentStore) -> ReadOnlyView:
    """The experiment's storage, read only.

    Raises:
        ValueError: if the directory holds no plan or its storage cannot be opened.
    """
    plan = read_plan(store)
    if plan.storage is None and not store.journal_path.exists():
        raise ValueError(f"{store.path} has no Optuna storage: nothing was launched there yet")
    return ReadOnlyView(Storage(store, plan.storage).trials, plan.experiment.name)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_dashboard(view: ReadOnlyView, host: str, port: int) -> WSGIServer:
    """The server, listening.

    Raises:
        ValueError: if the optional packages are missing, or address and port cannot be had.
    """
    try:
        import optuna_dashboard
    except ImportError:
        raise ValueError("the dashboard needs: pip install -e '.[dashboards]'") from None
    application = guarded(optuna_dashboard.wsgi(view), loopback=is_loopback(host))
    try:
        return make_server(host, port, application, _Server, _QuietHandler)
    except OSError as error:
        raise ValueError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def main(arguments: list[str] | None = None) -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m study.dashboard", description=__doc__)
    parser.add_argument("experiment", type=Path, help="an experiment's directory")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--host", default="127.0.0.1", help="another address lets others in")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    options = parser.parse_args(arguments)
    with reporting_user_errors():
        view = view_of(ExperimentStore(options.experiment))
        server = make_dashboard(view, options.host, options.port)
    url = f"http://{options.host}:{server.server_port}/dashboard"
    print(f"{options.experiment}: {url} (read only, Ctrl-C ends it)", flush=True)
    if not is_loopback(options.host):
        warning = f"warning: whoever reaches {options.host} can read this: there is no password"
        print(warning, file=sys.stderr)
    if not options.no_browser:
        webbrowser.open(url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
