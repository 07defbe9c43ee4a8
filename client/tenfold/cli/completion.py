"""`tenfold completion bash|zsh|fish`: prints the script that a shell completes `tenfold …` with."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

#: What to put where; shown by the help.
_EXAMPLES = """\b
    source <(tenfold completion bash)                                  # this shell
    tenfold completion bash > ~/.local/share/bash-completion/completions/tenfold
    tenfold completion zsh  > "${fpath[1]}/_tenfold"
    tenfold completion fish > ~/.config/fish/completions/tenfold.fish
"""


@click.command(
    help="Print the script for completion of commands and options in SHELL: bash, zsh or fish.\n\n" + _EXAMPLES
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    found = get_completion_class(shell)
    assert found is not None
    # not BashComplete's own, which runs bash to learn its version
    script = ShellComplete.source(found(context.find_root().command, {}, "tenfold", "_TENFOLD_COMPLETE"))
    click.echo(script)
