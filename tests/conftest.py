"""What all tests share: PyG imported quietly, and where the published data are."""

import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from no_skips import (  # noqa: F401
    pytest_collection_modifyitems,
    pytest_make_collect_report,
    pytest_runtest_makereport,
    pytest_terminal_summary,
)

with warnings.catch_warnings():
    # PyG's import uses what recent torch versions deprecate; not ours to mend.
    warnings.simplefilter("ignore")
    import torch_geometric  # noqa: F401


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the published files; tests that need it are skipped without."""
    root = os.environ.get("TOPOTER_DATA")
    if not root:
        pytest.skip("needs the published files: set TOPOTER_DATA")
    return Path(root)


@pytest.fixture(autouse=True)
def log_restored() -> Iterator[None]:
    """A command that runs in the test's own process sets where remarks go; the next test must not notice."""
    logger, show = logging.getLogger("topoter"), warnings.showwarning
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
    warnings.showwarning = show


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny graphs: starting a second thread for each operation would cost more than the work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def listening() -> Callable[[int], list[str]]:
    """Where a process waits for connections, as the kernel sees it: "127.0.0.1" for loopback, "0.0.0.0" for all."""
    if not Path("/proc/self/net/tcp").exists():
        pytest.skip("sockets are looked at in /proc")

    def addresses(pid: int) -> list[str]:
        own = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
        found = []
        for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:  # 0A is LISTEN
                    words = bytes.fromhex(fields[1].partition(":")[0])
                    packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
                    found.append(socket.inet_ntop(family, packed))
        return found

    return addresses
