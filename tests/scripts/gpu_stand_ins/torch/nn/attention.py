"""The choice of a backend of attention."""
import contextlib
import types

SDPBackend = types.SimpleNamespace(FLASH_ATTENTION="flash", CUDNN_ATTENTION="cudnn", EFFICIENT_ATTENTION="efficient",
                                   MATH="math")
chosen = "any"


@contextlib.contextmanager
def sdpa_kernel(backend):
    global chosen
    before, chosen = chosen, backend
    try:
        yield
    finally:
        chosen = before
