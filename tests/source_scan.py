"""Finds calls in Python sources that can run what a file holds, or write where an archive says."""

import ast
from collections.abc import Callable, Iterator

# Modules whose files run code when they are read
FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "telnetlib"}


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _without_weights_only(call: ast.Call) -> bool:
    return not _is(_keyword(call, "weights_only"), True)


def _unsafe_yaml(call: ast.Call) -> bool:
    loader = _keyword(call, "Loader") or (call.args[1] if len(call.args) > 1 else None)
    # the loader of settings_file.py, a SafeLoader, which a test holds
    return not (isinstance(loader, ast.Name) and loader.id in ("SafeLoader", "_Loader"))


def _always(call: ast.Call) -> bool:
    return True


# Dotted name of what is called, or its last part after a dot -> when a call of it is forbidden
RULES: dict[str, Callable[[ast.Call], bool]] = {
    "eval": _always,
    "exec": _always,
    "compile": _always,
    "__import__": _always,
    "input": _always,
    "os.system": _always,
    "os.popen": _always,
    "tempfile.mktemp": _always,
    "torch.load": _without_weights_only,
    "torch.jit.load": _always,
    "torch.hub.load": _always,
    "torch.serialization.add_safe_globals": _always,
    "numpy.load": lambda call: not _is(_keyword(call, "allow_pickle"), False),
    "yaml.load": _unsafe_yaml,
    "yaml.unsafe_load": _always,
    "yaml.full_load": _always,
    "pandas.read_pickle": _always,
    "shutil.unpack_archive": _always,
    "runpy.run_path": _always,
    "runpy.run_module": _always,
    ".extractall": _always,
    ".extract": _always,
    ".read_pickle": _always,
}


def violations(code: str) -> Iterator[str]:
    """Yields what in a source is forbidden, each with its line."""
    tree = ast.parse(code)
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names})
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
            modules = [node.module or ""]
        else:
            continue
        for module in modules:
            if module.split(".")[0] in FORBIDDEN_MODULES:
                yield f"line {node.lineno}: import {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _calls(node, names)


def _calls(call: ast.Call, names: dict[str, str]) -> Iterator[str]:
    name = _dotted(call.func, names)
    method = f".{name.rpartition('.')[2]}" if isinstance(call.func, ast.Attribute) else ""
    for rule in (name, method):
        if rule in RULES and RULES[rule](call):
            yield f"line {call.lineno}: {name}"
    if _keyword(call, "shell") is not None and name.startswith("subprocess."):
        yield f"line {call.lineno}: {name} in a shell"
    for switch, harmless in (("trust_remote_code", False), ("allow_pickle", False), ("verify", True)):
        value = _keyword(call, switch)
        if value is not None and not _is(value, harmless):
            yield f"line {call.lineno}: {name}({switch}=...)"


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(names.get(node.id, node.id))
    else:
        parts.append("")
    return ".".join(reversed(parts))
