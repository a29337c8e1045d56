"""Publishing a model's folder on the Hub, all of it or nothing."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token
from huggingface_hub.errors import HTTPError  # of the HTTP library that huggingface_hub uses, which has changed
from huggingface_hub.utils import validate_repo_id
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME

from .. import __version__
from .contents import TOKENIZER_CONFIG_NAME, published_files
from .custom_code import code_names
from .model_card import CARD_FILE, create_model_card

_HIDDEN = "<token>"


def push_folder(
    folder: str | os.PathLike,
    repo_id: str,
    with_code: bool = False,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
    commit_message: str | None = None,
) -> str:
    """Publishes a model of this package and its tokenizer in one commit, so that half of it is never to be seen.

    Args:
        folder: The model's folder, as `save_pretrained` and `Trainer` write it. Where neither it nor the repository
            has a `README.md`, one is made of what the folder holds (`create_model_card`).
        repo_id: Repository on the Hub, `user/name` or a name of your own; it is created if it does not exist.
        with_code: Whether the files of the family go with the model, which then loads with `trust_remote_code=True`
            where this package is not installed. By default one line goes with it that imports the package.
        private: Whether a repository that is created is private; one that exists must be so already.
        revision: Branch to publish on, by default "main"; it is created if it does not exist.
        token: Token with the right to write, by default `HF_TOKEN` or that of `hf auth login`.
        commit_message: By default one that names the version of this package.

    Returns:
        Address of the commit.

    Raises:
        ValueError: If the folder holds no complete model or results of another one, a file of it holds the token, the
            repository's name is no name, or `private` is asked for and the repository is public. Nothing has been
            sent then.
        OSError: If the Hub refuses or the connection breaks. What is visible in the repository is then what was there
            before, unless the last answer alone was lost.
    """
    validate_repo_id(repo_id)
    token = _checked_token(token)
    files = published_files(folder, with_code)
    makes_card = CARD_FILE not in files
    if makes_card:
        files[CARD_FILE] = _card(folder, repo_id)
    _check_for_token(files, token)
    api = HfApi(token=token, library_name="hf-lineage", library_version=__version__)
    with _explained_failure(repo_id, token):
        created = api.create_repo(repo_id, private=private or None, exist_ok=True).repo_id
        if makes_card and created != repo_id:  # a name without its user, whom the card's listing needs
            files[CARD_FILE] = _card(folder, created)
        repo_id = created
        if private and not api.model_info(repo_id).private:
            raise ValueError("the repository exists and is public")
        if revision is not None:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        head = api.model_info(repo_id, revision=revision)
        present = {file.rfilename for file in head.siblings or []}
        if makes_card and CARD_FILE in present:  # which may be somebody's own work
            del files[CARD_FILE]
        # not HfApi.upload_folder, which makes a commit of each batch of files where hf_xet is installed
        commit = api.create_commit(
            repo_id,
            [
                *(CommitOperationAdd(name, content) for name, content in files.items()),
                *(CommitOperationDelete(name) for name in sorted(_outdated(present, files))),
            ],
            commit_message=commit_message or f"Model published by hf-lineage {__version__}",
            revision=revision,
            parent_commit=head.sha,
        )
    return str(commit.commit_url)


def _card(folder: str | os.PathLike, repo_id: str) -> bytes:
    return str(create_model_card(folder, repo_id)).encode()


def _outdated(present: set[str], files: Iterable[str]) -> set[str]:
    """The files of a repository that a model published before has left, and that do not go with the new files."""
    outdated = {name for name in present if name == SAFE_WEIGHTS_INDEX_NAME or fnmatch(name, "model*.safetensors")}
    if (
        TOKENIZER_CONFIG_NAME in files or TOKENIZER_CONFIG_NAME not in present
    ):  # or else its tokenizer stays, with code
        outdated |= present & code_names()
    return outdated.difference(files)


def _checked_token(token: str | None) -> str | None:
    """The token that will be sent, so that it is known what must not be shown."""
    token = (token or get_token() or "").strip()
    if not token.isascii() or any(character.isspace() or not character.isprintable() for character in token):
        raise ValueError("the token has spaces or other characters that no token has; it is not shown here")
    return token or None


def _check_for_token(files: dict[str, Path | bytes], token: str | None) -> None:
    """Refuses to publish the token itself, which a card or a log in the folder may hold."""
    if token is None:
        return
    for name, content in files.items():
        if not name.endswith(".safetensors"):
            text = content if isinstance(content, bytes) else content.read_bytes()
            if token.encode() in text:
                raise ValueError(f"{name} holds your token: take it out, nothing was sent")


@contextmanager
def _explained_failure(repo_id: str, token: str | None) -> Iterator[None]:
    """Says what became of a push that failed, without the token and without the errors that may hold it."""
    try:
        yield
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        causes = [error, error.__cause__] if error.__cause__ is not None else [error]
        reason = " ".join(" ".join(f"{type(cause).__name__}: {cause}".split()) for cause in causes)
        if token is not None:
            reason = reason.replace(token, _HIDDEN)
        message = f"not published on {repo_id}, where everything changes in one commit or not at all: {reason}"
        raise (ValueError if isinstance(error, ValueError) else OSError)(message) from None


__all__ = ["push_folder"]
