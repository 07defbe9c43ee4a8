"""What became of a program that was run: `outcome` reads its exit code and its output. Used by run.py."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Kinds of outcomes that say nothing about Tenfold: what the program needs is not on this machine, or TensorFlow 1.15
#: does not run it either.
NEEDS = ("module", "network", "data", "arguments", "python 2", "display", "1.15")


class Outcome(NamedTuple):
    kind: str
    """`runs`, `misses` (a name of TensorFlow's), `fails`, or one of NEEDS."""
    why: str
    seconds: float

    @property
    def counts(self) -> bool:
        return self.kind not in NEEDS


_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): (?:No module named|Extension) '?([\w.]+)'?")
_MISSES = re.compile(
    r"answered by Tenfold, has no attribute|Tenfold answers for TensorFlow|is not part of Tenfold|tensorflow\."
)
_NETWORK = re.compile(
    r"URLError|gaierror|ConnectionError|Name or service not known|Temporary failure in name|SSLError|HTTPError"
)
_DATA = re.compile(r"FileNotFoundError|No such file or directory|IsADirectoryError|NotADirectoryError")
_ARGUMENTS = re.compile(
    r"^usage: |EOFError: EOF when reading a line|the following arguments are required|Flag --\w+ must|must be specified"
    r"|must specify",
    re.M,
)
_DISPLAY = re.compile(r"TclError|cannot connect to X|no display|GLX|pyglet|requires the '\w+' interactive framework")
#: Games of gym that need a library of their own, or a release of gym older than any that can be installed.
_GAME = re.compile(r"KeyError: '(BipedalWalker-v2)'|module 'gym\.envs\.(box2d)'|No module named '(atari_py)'")
#: What an error says that a package has become too new for a program → the package that it wants.
_OLDER = {
    "`load_boston` has been removed": "scikit-learn before 1.2",
    "cannot import name 'imsave' from 'scipy.misc'": "SciPy before 1.2",
    "TSNE.__init__() got an unexpected keyword argument 'n_iter'": "scikit-learn before 1.7",
    "load() missing 1 required positional argument: 'Loader'": "PyYAML before 6",
    "module 'pandas' has no attribute 'datetime'": "pandas before 2",
    "module 'PIL.Image' has no attribute 'ANTIALIAS'": "Pillow before 10",
}
#: Syntax and names that went with Python 2.
_PYTHON_2 = re.compile(
    r"SyntaxError: (?:Missing parentheses|invalid syntax|multiple exception types|leading zeros|invalid decimal"
    r"|name '\w+' is used prior to global declaration)"
    r"|TabError"
    r"|NameError: name '(?:xrange|raw_input|unicode|reduce|reload|file|long|basestring)'"
    r"|'dict' object has no attribute '(?:has_key|iteritems|itervalues)'|module '(?:string|itertools)' has"
    r" no attribute"
    r"|No module named '(?:cPickle|urllib2|Queue|StringIO|ConfigParser|commands|Tkinter)'"
    r"|a bytes-like object is required, not 'str'|'(?:zip|map|dict_keys|filter)' object"
    r"|for \+: '(?:dict_items|range)'|object of type '(?:map|zip|filter)' has no len"
    r"|module 'urllib' has no attribute '(?:urlretrieve|urlopen|urlencode|quote)'"
    r"|module 'sys' has no attribute 'setdefaultencoding'|'function' object has no attribute 'func_code'"
    r"|'range' object (?:does not support|has no attribute 'remove')|'generator' object has no attribute 'next'"
)


def outcome(code: int | None, output: str, seconds: float) -> Outcome:
    """`code` None: it was still at it when its time was over: a training, which runs unless it said otherwise."""
    last = _last_line(output)
    if code == 0:
        return Outcome("runs", "", seconds)
    if not re.search(r"Traceback \(most recent call last\)|SyntaxError|TabError", output):
        if code is None:
            return Outcome("runs", "stopped", seconds)
        kind = "arguments" if code == 2 or _ARGUMENTS.search(output) else "fails"
        return Outcome(kind, last or f"exit {code}", seconds)
    tail = output[max(0, output.rfind("Traceback (most recent call last)")) :]
    for kind, pattern in (("python 2", _PYTHON_2), ("network", _NETWORK), ("display", _DISPLAY)):
        if found := pattern.search(tail):
            return Outcome(kind, found[0][:120], seconds)
    if game := _GAME.search(output):
        return Outcome("module", f"gym's {game[1] or game[2] or game[3]}", seconds)
    for said, needed in _OLDER.items():
        if said in tail:
            return Outcome("module", needed, seconds)
    module = _MODULE.search(tail)
    if module and module[1].split(".")[0] != "tensorflow":
        return Outcome("module", module[1], seconds)
    if _MISSES.search(last):
        return Outcome("misses", last, seconds)
    for kind, pattern in (("data", _DATA), ("arguments", _ARGUMENTS)):
        if pattern.search(tail):
            return Outcome(kind, last, seconds)
    return Outcome("fails", last, seconds)


#: What `tenfold run` puts before the lines of a task.
_TASK = re.compile(r"^\w+/\d+ \| ")


def _last_line(output: str) -> str:
    """The line that names the error: the last one that begins like an exception, of any task, or the last one."""
    lines = [_TASK.sub("", line).strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit|Interrupt)\b", line)]
    return (errors or lines or [""])[-1][:240]
