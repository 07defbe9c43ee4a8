"""What the resources of a task hold, in numbers: its variables, its fullest queues, its largest tables.

Called by tenfold_services.figures with each heartbeat, beside running steps: nothing here takes a table's lock, so that
numbers of one table may be of two moments. Embedding variables are embedding_tables.py's, of other tables there are
entries and bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.resources.embedding_tables import EmbeddingTable
from tenfold_kernels.resources.lookup_tables import Table
from tenfold_kernels.resources.queues import UNBOUNDED, Queue
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_kernels.resources.quota import Account
    from tenfold_kernels.resources.state import ResourceManager

#: Queues and tables that are told of, the fullest and the largest: what one report holds.
MOST_QUEUES, MOST_TABLES = 32, 256
#: Characters of a table's name, the last ones: what tells parts apart is at the end.
_NAME = 300


def variable_figures(managers: Iterable[ResourceManager]) -> dict[str, int]:
    """How many initialized variables there are, and their bytes."""
    sizes = [variable.nbytes for each in managers for variable in each.every(Variable) if variable.is_initialized]
    return {"variables": len(sizes), "variable_bytes": sum(sizes)}


def queue_figures(managers: Iterable[ResourceManager]) -> list[dict[str, Any]]:
    """The fullest queues, by name; the capacity of one without a bound is None."""
    # of isolated sessions' queues of one name the fullest
    queues: dict[str, tuple[int, int]] = {}
    for queue in (queue for each in managers for queue in each.every(Queue)):
        found = (queue.size(), queue.capacity)
        queues[queue.name] = max(queues.get(queue.name, found), found)
    fullest = sorted(queues, key=lambda name: (-queues[name][0] / max(1, queues[name][1]), name))[:MOST_QUEUES]
    return [
        {"name": name, "size": size, "capacity": None if capacity == UNBOUNDED else capacity}
        for name in sorted(fullest)
        for size, capacity in [queues[name]]
    ]


def table_figures(managers: Iterable[ResourceManager]) -> dict[str, Any]:
    """Rows and bytes of all tables, and those of the largest, by name."""
    every = [_embeddings(table) for each in managers for table in each.every(EmbeddingTable)]
    every += [_entries(table) for each in managers for table in each.every(Table)]
    every.sort(key=lambda table: (-table["bytes"], table["name"]))
    # of isolated sessions' tables of one name the largest
    tables: dict[str, dict[str, Any]] = {}
    for table in every:
        tables.setdefault(table["name"], table)
    largest = list(tables.values())[:MOST_TABLES]
    return {
        "table_rows": sum(table["rows"] for table in every),
        "table_bytes": sum(table["bytes"] for table in every),
        "tables": sorted(largest, key=lambda table: str(table["name"])),
        "tables_left_out": len(every) - len(largest),
    }


def _embeddings(table: EmbeddingTable) -> dict[str, Any]:
    # found first: a step that looks up meanwhile counts lookups before what they found
    found, rows = table.found, len(table)
    return {
        "name": table.name[-_NAME:],
        "kind": "EmbeddingVariable",
        "rows": rows,
        "waiting": min(table.waiting, rows),
        "evicted": table.evicted,
        "bytes": table.nbytes,
        "quota_bytes": _charged(table.account),
        "lookups": table.lookups,
        "found": found,
    }


def _entries(table: Table) -> dict[str, Any]:
    """Of a lookup table: its bytes are those that count for quotas."""
    nothing = dict.fromkeys(("waiting", "evicted", "lookups", "found"))
    charged = _charged(table.account)
    named = {"name": table.name[-_NAME:], "kind": table.kind, "rows": table.size()}
    return {**named, "bytes": charged or 0, "quota_bytes": charged, **nothing}


def _charged(account: Account | None) -> int | None:
    return None if account is None else account.bytes
