"""A service that knows nothing of OpenTelemetry: for each request it writes a line to its log, and
asks the next service, if there is one."""

import logging
import os
import urllib.request

from flask import Flask, request

try:
    # A module that only the service's own PYTHONPATH finds.
    from own import GREETING
except ImportError:
    GREETING = ""

app = Flask("service")
log = logging.getLogger("service")


def ask(address):
    if not address:
        return ""
    with urllib.request.urlopen(address) as response:
        return " " + response.read().decode()


@app.get("/<path:path>")
def answer(path):
    log.info("python was asked for /%s", path)
    return f"python {GREETING}" + ask(os.environ.get("NEXT"))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    app.run("127.0.0.1", int(os.environ["PORT"]))
