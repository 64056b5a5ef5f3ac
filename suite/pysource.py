"""What can be told about a Python source by its syntax tree: its entry point, and the few things no kernel may do."""

from __future__ import annotations

import ast
import warnings

_PROCESSES = frozenset({"subprocess", "_posixsubprocess", "multiprocessing", "posix", "pty", "socket", "_socket"})
_INSIDES = frozenset({"ctypes", "_ctypes", "inspect", "gc", "builtins"})
_MODULES = _PROCESSES | _INSIDES
_OS_CALLS = ("fork", "forkpty", "_exit", "abort", "system", "popen", "kill", "killpg")
_OS_FAMILIES = ("exec", "spawn", "posix_spawn")
_DYNAMIC = frozenset({"exec", "eval", "compile", "__import__"})
_ATTRIBUTES = frozenset({"__builtins__", "__subclasses__", "__globals__", "f_globals", "f_back", "f_locals"})
_FRAMES = frozenset({"_getframe", "_current_frames", "_getframemodulename"})


def parse(source: str) -> ast.Module | None:
    """The tree, or None for what Python cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a candidate's string is no business of ours
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def entry(tree: ast.Module, symbol: str, count: int) -> str | None:
    """Why `symbol` cannot be called with `count` positional arguments, or None."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == symbol]
    if len(functions) > 1:
        return f"{symbol} is defined {len(functions)} times"
    if not functions:
        return None if _bound(tree, symbol) else f"no function {symbol} at the top level"
    arguments = functions[0].args
    most = len(arguments.posonlyargs) + len(arguments.args)
    least = most - len(arguments.defaults)
    if any(default is None for default in arguments.kw_defaults):
        return f"{symbol} has keyword-only parameters, but is called with positions only"
    if least <= count and (count <= most or arguments.vararg):
        return None
    return f"{symbol} takes {most} parameters, the task passes {count}"


def _bound(tree: ast.Module, symbol: str) -> bool:
    """Whether the name is bound otherwise than by a plain `def`: assigned, imported, or defined under `if` or `try`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == symbol and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) == symbol:
            return True
    nested = (child for node in tree.body if isinstance(node, ast.If | ast.Try | ast.With) for child in ast.walk(node))
    return any(isinstance(child, ast.FunctionDef) and child.name == symbol for child in nested)


def banned(tree: ast.Module) -> str | None:
    """The first thing in the tree that a kernel has no use for, in words, or None."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        detail = _import(node) or _call(node) or _name(node)
        if detail is None and isinstance(node, ast.Constant) and id(node) not in prose:
            detail = "a path under /proc" if isinstance(node.value, str) and node.value.startswith("/proc") else None
        if detail is not None:
            return f"line {getattr(node, 'lineno', 0)}: {detail}"
    return None


def _import(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        module = node.module or ""
        names = [module]
        imported = [f"{module}.{alias.name}" for alias in node.names]
        if found := next((name for name in imported if _os_call(*name.rpartition(".")[::2])), None):
            return f"an import of {found}"
        if module == "sys" and (frames := _FRAMES & {alias.name for alias in node.names}):
            return f"an import of sys.{min(frames)}"
    else:
        return None
    found = next((name for name in names if name.split(".")[0] in _MODULES), None)
    return None if found is None else f"an import of {found}"


def _os_call(module: str, name: str) -> bool:
    return module == "os" and (name in _OS_CALLS or name.startswith(_OS_FAMILIES))


def _call(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    function, literal = node.func, bool(node.args) and isinstance(node.args[0], ast.Constant)
    if isinstance(function, ast.Name) and function.id in _DYNAMIC:
        if not literal:
            return f"{function.id}() of something other than a literal"
        return _imported_by_name(node) if function.id == "__import__" else None
    if isinstance(function, ast.Attribute) and function.attr == "import_module":
        return _imported_by_name(node) if literal else "import_module() of something other than a literal"
    return None


def _imported_by_name(node: ast.Call) -> str | None:
    first = node.args[0]
    name = str(first.value) if isinstance(first, ast.Constant) else ""
    return f"an import of {name}" if name.split(".")[0] in _MODULES else None


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and node.id == "__builtins__":
        return "the name __builtins__"
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    if _os_call(owner, node.attr):
        return f"os.{node.attr}"
    if node.attr in _ATTRIBUTES or node.attr in _FRAMES:
        return f"the attribute {node.attr}"
    return None
