"""A Dask cluster runs code for those who have its certificate, and for no one else on the machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import dask
import distributed
import psutil
import pytest

from plait.errors import MachineError, RequestError
from plait.study.executors import choice
from plait.study.executors.cluster import connection, started
from plait.study.executors.cluster.connection import DaskConnection
from plait.study.executors.cluster.executor import ClusterExecutor

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

WORKERS = 2
WAIT_S = 300
"""How long a test waits for an answer of a server; none waits for it to be refused."""
TEMPORARY = distributed.Security.temporary


@pytest.fixture(scope="module")
def everybodys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for temporary files in which another user has made the folder that Dask uses."""
    folder = tmp_path_factory.mktemp("everybodys")
    (folder / "dask-scratch-space").mkdir()
    (folder / "dask-scratch-space").chmod(0o777)
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, everybodys: Path) -> Iterator[ClusterExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("TMPDIR", str(everybodys))  # for the workers
        patch.setattr(tempfile, "tempdir", str(everybodys))
        with ClusterExecutor(f"local:{WORKERS}") as cluster:
            yield cluster


@pytest.fixture(scope="module")
def ports(cluster: ClusterExecutor) -> list[int]:
    """Return the ports on which this process and its children listen."""
    listening = []
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        for link in process.net_connections("all"):
            assert link.family != socket.AF_UNIX or not link.laddr or link.raddr, "it listens at a path"
            if link.family != socket.AF_UNIX and link.status in (psutil.CONN_LISTEN, psutil.CONN_NONE):
                listening.append(link.laddr.port)
    return sorted(set(listening))


def test_a_cluster_of_this_machine_listens_for_scheduler_nannies_and_workers_alone(
    ports: list[int], cluster: ClusterExecutor
) -> None:
    assert len(ports) == 1 + 2 * WORKERS, (
        "a port more, perhaps of web pages, which ask nobody for a certificate"
    )
    assert cluster._connection.dashboard is None


def test_ctrl_c_reaches_plait_and_none_of_its_workers(cluster: ClusterExecutor) -> None:
    """A terminal sends it to all of them; plait ends its workers itself."""
    workers = psutil.Process().children(recursive=True)
    assert len(workers) >= WORKERS
    assert cluster.workers == WORKERS
    for worker in workers:
        lines = Path(f"/proc/{worker.pid}/status").read_text(encoding="utf-8").splitlines()
        masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk:", "SigIgn:"))]
        assert any(mask >> signal.SIGINT - 1 & 1 for mask in masks), worker.cmdline()


def answer_of(stream: socket.socket) -> bytes:
    """Return what a server answers to a request for a page, the first bytes of any protocol."""
    stream.settimeout(WAIT_S)
    stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
    return stream.recv(4096)


def test_a_client_without_tls_gets_no_answer(ports: list[int]) -> None:
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), WAIT_S) as stream:
            try:
                answer = answer_of(stream)
            except ConnectionResetError:
                continue
        assert answer[:1] in (b"", b"\x15"), f"port {port} answers with something else than an alert of TLS"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("certificate", ["no certificate", "another certificate"])
def test_a_client_without_the_certificate_gets_no_answer(
    version: ssl.TLSVersion, certificate: str, ports: list[int]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate != "no certificate":
        context = TEMPORARY().get_connection_args("client")["ssl_context"]
        context.verify_mode = ssl.CERT_NONE
    context.maximum_version = version
    for port in ports:
        with (
            socket.create_connection(("127.0.0.1", port), WAIT_S) as stream,
            pytest.raises((ssl.SSLError, ConnectionResetError)),
            context.wrap_socket(stream) as encrypted,
        ):
            answer_of(encrypted)


def _write_where_it_runs(path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - what a stranger would run
        file.write(str(os.getpid()))


def attack(address: str, security: Any, path: Path) -> None:
    """Run a function of a stranger in the scheduler and in all workers."""
    with distributed.Client(address, security=security, timeout="3 s", set_as_default=False) as client:
        client.run_on_scheduler(_write_where_it_runs, str(path))
        client.run(_write_where_it_runs, str(path))


def test_a_stranger_runs_no_code(cluster: ClusterExecutor, tmp_path: Path) -> None:
    address = str(cluster._connection._client.scheduler.address)
    for strange, security in (
        (address.replace("tls:", "tcp:"), None),
        (address, TEMPORARY()),
    ):
        with pytest.raises(OSError, match=r"closed|certificate|imed out"):
            attack(strange, security, tmp_path / "stranger")
    assert not (tmp_path / "stranger").exists()
    attack(address, cluster._connection._security, tmp_path / "own")
    assert (tmp_path / "own").exists(), "the attack does nothing where it is allowed, so it shows nothing"


def test_other_users_can_read_the_key_nowhere(cluster: ClusterExecutor) -> None:
    _, secret, *_ = cluster._connection._security.tls_client_key.splitlines()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        assert secret not in " ".join(process.cmdline()), "a command line has the key"
        assert secret not in str(process.environ()), "an environment has the key"


def _import_path() -> list[str]:
    return list(sys.path)


def test_code_is_imported_from_no_folder_that_another_user_could_have_made(
    cluster: ClusterExecutor, everybodys: Path
) -> None:
    address = str(cluster._connection._client.scheduler.address)
    with distributed.Client(address, security=cluster._connection._security, set_as_default=False) as client:
        paths = [client.run_on_scheduler(_import_path), *client.run(_import_path).values()]
        paths += client.run(_import_path, nanny=True).values()
    assert len(paths) == 1 + 2 * WORKERS
    folders = {
        folder for path in paths for folder in path if "dask" in folder and "site-packages" not in folder
    }
    assert folders, "Dask imports code from its folder no more, so this shows nothing"
    assert not [folder for folder in folders if folder.startswith(str(everybodys))]
    assert not list((everybodys / "dask-scratch-space").iterdir())


class _Jobs:
    """Stands in for the cluster of dask-jobqueue, and keeps what it was asked for."""

    asked: ClassVar[dict[str, Any]] = {}

    def __init__(self, **options: Any) -> None:
        self.asked.update(options)

    def __await__(self) -> Generator[None, None, _Jobs]:
        yield from ()
        return self

    def adapt(self, **_: object) -> None: ...


@pytest.mark.parametrize(("configured", "works_in"), [(None, "private"), ("/scratch/me", "/scratch/me")])
def test_jobs_of_slurm_import_code_from_a_private_folder_or_that_of_the_user(
    configured: str | None, works_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=_Jobs))
    with dask.config.set({"jobqueue.slurm.local-directory": configured}):
        asyncio.run(started.slurm(TEMPORARY(), tmp_path / "private"))
    assert _Jobs.asked["local_directory"].endswith(works_in)
    assert _Jobs.asked["scheduler_options"] == {"local_directory": str(tmp_path / "private")}


def test_a_cluster_without_tls_is_refused_with_the_remedy() -> None:
    with pytest.raises(RequestError, match=r"run code as you.*tls://HOST:PORT.*--insecure"):
        choice.executor_of("tcp://127.0.0.1:8786")
    assert choice.executor_of("tcp://127.0.0.1:8786", insecure=True) is not None


@pytest.mark.parametrize("where", ["local:2", "slurm", "tls://127.0.0.1:8786"])
def test_insecure_is_refused_where_it_has_no_effect(where: str) -> None:
    with pytest.raises(RequestError, match="omit --insecure"):
        DaskConnection(where, lambda _: None, insecure=True)


def test_insecure_without_a_cluster_is_refused() -> None:
    with pytest.raises(RequestError, match="has no effect"):
        choice.executor_of(None, insecure=True)


def test_a_missing_library_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(RequestError, match=r"pip install 'plait\[cluster\]'"):
        DaskConnection("local:1", lambda _: None).load()


def certificates(folder: Path) -> dict[str, str]:
    """Write the certificate of a cluster and return the settings of Dask that name it."""
    security = TEMPORARY()
    (folder / "ca.pem").write_text(security.tls_ca_file)
    (folder / "key.pem").write_text(security.tls_client_key)
    tls = "distributed.comm.tls"
    files = {f"{tls}.ca-file": str(folder / "ca.pem")}
    for role in ("client", "scheduler", "worker"):
        files |= {f"{tls}.{role}.cert": str(folder / "ca.pem"), f"{tls}.{role}.key": str(folder / "key.pem")}
    return files


def test_certificates_of_the_configuration_reach_a_cluster_of_the_user(tmp_path: Path) -> None:
    with (
        dask.config.set(certificates(tmp_path)),
        distributed.LocalCluster(
            n_workers=1, host="127.0.0.1", protocol="tls", security=distributed.Security(),
            dashboard_address="127.0.0.1:0",
        ) as other,
        ClusterExecutor(other.scheduler_address) as executor,
    ):  # fmt: skip
        assert executor.workers > 0


def test_missing_certificates_are_reported_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"no certificate is configured.*CA_FILE"):
        ClusterExecutor("tls://127.0.0.1:9").__enter__()
    files = certificates(tmp_path)
    (tmp_path / "key.pem").unlink()
    with dask.config.set(files), pytest.raises(RequestError, match=r"reading the certificates .*key\.pem"):
        ClusterExecutor("tls://127.0.0.1:9").__enter__()


def test_a_scheduler_with_another_certificate_is_refused(
    cluster: ClusterExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 3)
    address = str(cluster._connection._client.scheduler.address)
    with dask.config.set(certificates(tmp_path)), pytest.raises(MachineError, match="certificate"):
        ClusterExecutor(address).__enter__()
