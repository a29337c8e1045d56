"""A Hub on this machine for tests: what huggingface_hub asks of the real one for repositories of models, in memory."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pytest
from huggingface_hub import constants
from transformers.utils import hub as transformers_hub

USER = "tester"
TOKEN = "hf_aTokenThatMustNotShow"
LARGE = (".safetensors", ".bin", ".h5")
JsonObject = dict[str, object]


@dataclass(frozen=True)
class Blob:
    """A file's content; large files are known by the SHA-256 of it, small ones as git knows them."""

    content: bytes
    is_large: bool

    @property
    def git_oid(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def etag(self) -> str:
        return hashlib.sha256(self.content).hexdigest() if self.is_large else self.git_oid


@dataclass
class Repository:
    """Branches and commits, each commit a table of all files."""

    private: bool
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, Blob]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, branch: str, files: dict[str, Blob], message: str) -> str:
        oid = hashlib.sha1(f"{len(self.commits)} {branch} {sorted(files)}".encode()).hexdigest()
        self.commits[oid] = files
        self.branches[branch] = oid
        self.messages.append(message)
        return oid

    def oid(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.branches.get(revision)


@dataclass
class Fault:
    """Breaks the connection, or answers with an error, where a request fits."""

    method: str
    path: str
    after: int  # bytes of the body that pass before the connection breaks
    status: int | None
    message: str
    times: int


@dataclass(frozen=True)
class Request:
    """What the server was asked."""

    method: str
    path: str
    range: str | None
    authorization: str | None


class Refusal(Exception):
    """An answer that says no."""

    def __init__(self, status: int, code: str | None = None, message: str = "refused"):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class LoopbackHub:
    """The server and all that it holds; a context manager that runs it."""

    def __init__(self):
        self.token = TOKEN
        self.repositories: dict[str, Repository] = {}
        self.large_objects: dict[str, bytes] = {}
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._server.daemon_threads = True
        port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{port}"
        self.storage_url = f"http://localhost:{port}/storage"  # large files are on another host

    def __enter__(self) -> "LoopbackHub":
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    def create(self, repo_id: str, private: bool = False) -> Repository:
        repository = self.repositories[repo_id] = Repository(private)
        repository.commit("main", {".gitattributes": Blob(b"*.safetensors filter=lfs\n", False)}, "initial commit")
        return repository

    def files(self, repo_id: str, revision: str = "main") -> dict[str, bytes]:
        """The files of a branch as a reader sees them."""
        repository = self.repositories[repo_id]
        files = repository.commits[repository.branches[revision]]
        return {name: blob.content for name, blob in files.items() if name != ".gitattributes"}

    def put(self, repo_id: str, files: dict[str, bytes]) -> None:
        """Adds files behind the API's back."""
        repository = self.repositories.get(repo_id) or self.create(repo_id)
        blobs = {name: Blob(content, name.endswith(LARGE)) for name, content in files.items()}
        repository.commit("main", {**repository.commits[repository.branches["main"]], **blobs}, "put")

    def break_connection(self, method: str, path: str, after: int = 0, times: int = 1) -> None:
        """Breaks the connection of the next requests whose path has `path` in it, after some bytes of the body."""
        self.faults.append(Fault(method, path, after, None, "", times))

    def answer(self, method: str, path: str, status: int, message: str = "", times: int = 1) -> None:
        """Answers the next requests whose path has `path` in it with an error."""
        self.faults.append(Fault(method, path, 0, status, message, times))

    def asked(self, method: str, path: str) -> list[Request]:
        """The requests whose path has `path` in it."""
        return [request for request in self.requests if request.method == method and path in request.path]

    def fault_of(self, method: str, path: str) -> Fault | None:
        """The fault that waits for a request, which is then one fewer."""
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.method == method and fault.path in path:
                    fault.times -= 1
                    return fault
        return None


def use(server: LoopbackHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes huggingface_hub and transformers talk to a server; they read the environment when they are imported."""
    for name, value in {
        "ENDPOINT": server.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(cache),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,  # its protocol is another one, which this server does not speak
        "HF_TOKEN_PATH": str(cache / "no token"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", server.url)
    monkeypatch.setattr(transformers_hub, "_hf_api", None)
    monkeypatch.setenv("HF_TOKEN", server.token)


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # header and body in one packet

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET

    def _serve(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        authorization = self.headers.get("Authorization")
        self.hub.requests.append(Request(self.command, path, self.headers.get("Range"), authorization))
        self._fault = self.hub.fault_of(self.command, path)
        if self._fault is not None and self._fault.status is None and self.command != "GET":
            self.rfile.read(self._fault.after)
            self._cut()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        try:
            if self._fault is not None and self._fault.status is not None:
                raise Refusal(self._fault.status, message=self._fault.message)
            for method, pattern, respond in _ROUTES:
                match = re.fullmatch(pattern, path)
                if match and self.command in method.split():
                    respond(self, *match.groups(), **({"body": body} if self.command in ("POST", "PUT") else {}))
                    return
            raise Refusal(404, "EntryNotFound", f"no route {self.command} {path}")
        except Refusal as refusal:
            headers = {"X-Error-Code": refusal.code} if refusal.code else {}
            headers["X-Error-Message"] = refusal.message
            self._send(json.dumps({"error": refusal.message}).encode(), refusal.status, headers)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(2)

    def _send(self, content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status, HTTPStatus(status).phrase)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self._fault is not None and self._fault.status is None and len(content) > self._fault.after:
            self.wfile.write(content[: self._fault.after])
            self.wfile.flush()
            self._cut()
        else:
            self.wfile.write(content)

    def _send_json(self, value: object) -> None:
        self._send(json.dumps(value).encode(), headers={"Content-Type": "application/json"})

    def _is_user(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    def _check_user(self) -> None:
        if not self._is_user():
            raise Refusal(401, message="Invalid username or password.")

    def _repository(self, repo_id: str, to_write: bool = False) -> Repository:
        repository = self.hub.repositories.get(repo_id)
        if repository is None or (repository.private and not self._is_user()):
            raise Refusal(401, "RepoNotFound", "Repository not found")
        if to_write:
            self._check_user()
        return repository

    def _files(self, repo_id: str, revision: str) -> tuple[str, dict[str, Blob]]:
        repository = self._repository(repo_id)
        oid = repository.oid(revision)
        if oid is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return oid, repository.commits[oid]

    def whoami(self) -> None:
        self._check_user()
        self._send_json({"type": "user", "name": USER, "orgs": []})

    def create(self, body: bytes) -> None:
        self._check_user()
        wanted = json.loads(body)
        repo_id = f"{wanted.get('organization') or USER}/{wanted['name']}"
        answer = {"url": f"{self.hub.url}/{repo_id}", "name": repo_id}
        if repo_id in self.hub.repositories:
            self._send(json.dumps({**answer, "error": "You already created this model repo"}).encode(), 409)
            return
        self.hub.create(repo_id, wanted.get("private") is True or wanted.get("visibility") == "private")
        self._send_json(answer)

    def validate_yaml(self, body: bytes) -> None:
        content = json.loads(body)["content"]
        errors = [] if content.startswith("---\n") else [{"message": "no metadata"}]
        self._send(json.dumps({"errors": errors, "warnings": []}).encode(), 400 if errors else 200)

    def info(self, repo_id: str, revision: str | None = None) -> None:
        oid, files = self._files(repo_id, revision or "main")
        siblings = [{"rfilename": name} for name in files]
        private = self.hub.repositories[repo_id].private
        self._send_json(
            {"id": repo_id, "modelId": repo_id, "sha": oid, "private": private, "siblings": siblings, "tags": []}
        )

    def tree(self, repo_id: str, revision: str, folder: str | None = None) -> None:
        _, files = self._files(repo_id, revision)
        if folder is not None and not any(name.startswith(f"{folder}/") for name in files):
            raise Refusal(404, "EntryNotFound", f"{folder} does not exist on {revision}")
        entries = [
            {"type": "file", "path": name, "oid": blob.git_oid, "size": len(blob.content)}
            | ({"lfs": {"oid": blob.etag, "size": len(blob.content), "pointerSize": 100}} if blob.is_large else {})
            for name, blob in files.items()
            if folder is None or name.startswith(f"{folder}/")
        ]
        self._send_json(entries)

    def branch(self, repo_id: str, name: str, body: bytes) -> None:
        repository = self._repository(repo_id, to_write=True)
        if name in repository.branches:
            raise Refusal(409, message="Reference already exists")
        repository.branches[name] = repository.branches["main"]
        self._send_json({})

    def preupload(self, repo_id: str, revision: str, body: bytes) -> None:
        self._repository(repo_id, to_write=True)
        _, files = self._files(repo_id, revision)
        answers: list[JsonObject] = []
        for wanted in json.loads(body)["files"]:
            name = wanted["path"]
            answer = {
                "path": name,
                "uploadMode": "lfs" if name.endswith(LARGE) else "regular",
                "shouldIgnore": False,
            }
            answers.append(answer | ({"oid": files[name].etag} if name in files else {}))
        self._send_json({"files": answers})

    def large_batch(self, repo_id: str, body: bytes) -> None:
        self._repository(repo_id, to_write=True)
        objects: list[JsonObject] = []
        for wanted in json.loads(body)["objects"]:
            answer = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.hub.large_objects:
                upload = {"href": f"{self.hub.storage_url}/{wanted['oid']}"}
                verify = {"href": f"{self.hub.url}/{repo_id}.git/info/lfs/verify"}
                answer["actions"] = {"upload": upload, "verify": verify}
            objects.append(answer)
        self._send_json({"transfer": "basic", "objects": objects})

    def store(self, oid: str, body: bytes) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            raise Refusal(400, message="content and SHA-256 differ")
        self.hub.large_objects[oid] = body
        self._send(b"")

    def verify(self, repo_id: str, body: bytes) -> None:
        self._repository(repo_id, to_write=True)
        wanted = json.loads(body)
        if len(self.hub.large_objects.get(wanted["oid"], b"")) != wanted["size"]:
            raise Refusal(404, message="object is not complete")
        self._send_json({})

    def commit(self, repo_id: str, revision: str, body: bytes) -> None:
        repository = self._repository(repo_id, to_write=True)
        parent, files = self._files(repo_id, revision)
        files = dict(files)
        message = ""
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                message = value["summary"]
                if value.get("parentCommit") not in (None, parent):
                    raise Refusal(412, message="The branch has changed since")
            elif entry["key"] == "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]), False)
            elif entry["key"] == "lfsFile":
                if value["oid"] not in self.hub.large_objects:
                    raise Refusal(400, message=f"no object {value['oid']}")
                files[value["path"]] = Blob(self.hub.large_objects[value["oid"]], True)
            elif entry["key"] == "deletedFile":
                del files[value["path"]]
            else:
                raise Refusal(400, message=f"unknown entry {entry['key']}")
        oid = repository.commit(revision, files, message)
        self._send_json({"commitUrl": f"{self.hub.url}/{repo_id}/commit/{oid}", "commitOid": oid, "success": True})

    def resolve(self, repo_id: str, revision: str, name: str) -> None:
        oid, files = self._files(repo_id, revision)
        if name not in files:
            raise Refusal(404, "EntryNotFound", f"{name} does not exist on {revision}")
        blob = files[name]
        headers = {"X-Repo-Commit": oid, "ETag": f'"{blob.etag}"', "Accept-Ranges": "bytes"}
        if blob.is_large:
            large = {"X-Linked-Size": str(len(blob.content)), "X-Linked-ETag": f'"{blob.etag}"'}
            self.hub.large_objects.setdefault(blob.etag, blob.content)
            self._send(b"", 302, {**headers, **large, "Location": f"{self.hub.storage_url}/{blob.etag}"})
        else:
            self._send_part(blob.content, headers)

    def stored(self, oid: str) -> None:
        if oid not in self.hub.large_objects:
            raise Refusal(404, "EntryNotFound", "no such object")
        self._send_part(self.hub.large_objects[oid], {"ETag": f'"{oid}"', "Accept-Ranges": "bytes"})

    def _send_part(self, content: bytes, headers: dict[str, str]) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if wanted is None:
            self._send(content, headers=headers)
            return
        start = int(wanted[1])
        headers = {**headers, "Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        self._send(content[start:], 206, headers)


_REPO = r"([^/]+/[^/]+)"
_ROUTES: list[tuple[str, str, Callable[..., None]]] = [
    ("GET", "/api/whoami-v2", _Handler.whoami),
    ("POST", "/api/repos/create", _Handler.create),
    ("POST", "/api/validate-yaml", _Handler.validate_yaml),
    ("GET", f"/api/models/{_REPO}", _Handler.info),
    ("GET", f"/api/models/{_REPO}/revision/(.+)", _Handler.info),
    ("GET", f"/api/models/{_REPO}/tree/([^/]+)(?:/(.+))?", _Handler.tree),
    ("POST", f"/api/models/{_REPO}/branch/(.+)", _Handler.branch),
    ("POST", f"/api/models/{_REPO}/preupload/(.+)", _Handler.preupload),
    ("POST", rf"/{_REPO}\.git/info/lfs/objects/batch", _Handler.large_batch),
    ("POST", rf"/{_REPO}\.git/info/lfs/verify", _Handler.verify),
    ("PUT", r"/storage/(\w+)", _Handler.store),
    ("GET HEAD", r"/storage/(\w+)", _Handler.stored),
    ("POST", f"/api/models/{_REPO}/commit/(.+)", _Handler.commit),
    ("GET HEAD", f"/{_REPO}/resolve/([^/]+)/(.+)", _Handler.resolve),
]
