"""The machine code of memory.py: malloc, calloc, realloc and free as NumPy calls them, built with llvmlite.

NumPy calls them with the GIL held and without an interpreter around, so they cannot be Python; four functions of a few
instructions take a tenth of the time that Numba needs to be loaded. They know lists of free blocks and counters, in a
table that memory.py shares with them and that has all decisions. The interface is NumPy's (NEP 49, PyDataMem_Handler).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.native_code import compile_module

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Blocks of these sizes are kept, in bytes; all others are NumPy's own affair.
SMALLEST, LARGEST = 1 << 14, 1 << 34
#: Cleared blocks up to this size are kept ones that are cleared; larger ones are fresh pages, zero by nature.
LARGEST_CLEARED = 1 << 20
#: Classes of sizes to each doubling: 2 ** 3. A block is at most an eighth larger than what was asked for.
_BITS = 3

#: The table, by number of its int64: NumPy's default functions; the most bytes to keep; kept and given out: bytes, and
#: how often a block was there and was not.
CONTEXT, MALLOC, CALLOC, REALLOC, FREE, KEEP, KEPT, IN_USE, HITS, MISSES = range(10)
#: From here on, for each class: the first free block, how many there are, the fewest in this period, its bytes.
CLASSES, FIRST, COUNT, FEWEST, BYTES, CLASS_WORDS = 16, 0, 1, 2, 3, 4

#: Bytes before a block's memory, where its header is, and the most that aligning it takes.
_HEADER, _ALIGNED = 64, 64
#: Words of the header, before the memory: a mark, the address of its class, what was allocated, the next block.
_MARK, _CLASS, _BASE, _NEXT = -8, -16, -24, -32
#: What a block in use has as its mark, combined with its address. No size that a C library could write there.
_IN_USE_MARK = 0x7E4F_01D5_C0DE_A110


def class_of(nbytes: int) -> tuple[int, int]:
    """The class of a block of that size, from 0 on, and the bytes of all of its blocks."""
    shift = (nbytes - 1).bit_length() - 1 - _BITS
    part = (nbytes - 1) >> shift
    return (shift << _BITS) + part - _FIRST_CLASS, (part + 1) << shift


_FIRST_CLASS = 0
_FIRST_CLASS = class_of(SMALLEST)[0]
CLASS_COUNT = class_of(LARGEST)[0] + 1
TABLE_WORDS = CLASSES + CLASS_COUNT * CLASS_WORDS


class _Function:
    """One function that is being written: all its values are int64, an address is one too."""

    def __init__(self, module: Any, name: str, arguments: int, returns: bool = True) -> None:
        from llvmlite import ir  # type: ignore[import-untyped]

        self.ir, self.word = ir, ir.IntType(64)
        result = self.word if returns else ir.VoidType()
        self.function = ir.Function(module, ir.FunctionType(result, [self.word] * arguments), name)
        self.at = ir.IRBuilder(self.function.append_basic_block())
        self.arguments = self.function.args

    def number(self, value: int) -> Any:
        return self.ir.Constant(self.word, value)

    def _place(self, address: Any, offset: int) -> Any:
        return self.at.inttoptr(self.at.add(address, self.number(offset)), self.word.as_pointer())

    def read(self, address: Any, offset: int) -> Any:
        return self.at.load(self._place(address, offset))

    def write(self, address: Any, offset: int, value: Any) -> None:
        self.at.store(value, self._place(address, offset))

    def count(self, address: Any, offset: int, by: Any) -> Any:
        """Adds to a number in memory; the sum."""
        total = self.at.add(self.read(address, offset), by)
        self.write(address, offset, total)
        return total

    def call(self, address: Any, arguments: Sequence[Any], returns: bool = True) -> Any:
        """Calls a C function by its address."""
        result = self.word if returns else self.ir.VoidType()
        kind = self.ir.FunctionType(result, [self.word] * len(arguments))
        return self.at.call(self.at.inttoptr(address, kind.as_pointer()), arguments)

    def pointer(self, address: Any) -> Any:
        return self.at.inttoptr(address, self.ir.IntType(8).as_pointer())


def _is_kept_size(f: _Function, size: Any) -> Any:
    return f.at.icmp_unsigned("<=", f.at.sub(size, f.number(SMALLEST)), f.number(LARGEST - SMALLEST))


def _is_ours(f: _Function, block: Any) -> Any:
    """Whether `block` was given out here. What is before an address is readable where it is inside a page."""
    at, zero = f.at, f.number(0)
    aligned = at.icmp_unsigned("==", at.and_(block, f.number(_ALIGNED - 1)), zero)
    inside = at.icmp_unsigned("!=", at.and_(block, f.number(4095)), zero)
    ours = at.alloca(f.ir.IntType(1))
    at.store(at.and_(aligned, inside), ours)
    with at.if_then(at.load(ours)):
        mark = at.xor(block, f.number(_IN_USE_MARK))
        at.store(at.icmp_unsigned("==", f.read(block, _MARK), mark), ours)
    return at.load(ours)


def _take(module: Any) -> Any:
    """(table, address of a class) → what to free of its first free block, which leaves the list; 0 without one."""
    f = _Function(module, "tenfold_take", 2)
    at, (table, own) = f.at, f.arguments
    found = f.read(own, 8 * FIRST)
    with at.if_then(at.icmp_unsigned("==", found, f.number(0))):
        at.ret(found)
    f.write(own, 8 * FIRST, f.read(found, _NEXT))
    f.count(own, 8 * COUNT, f.number(-1))
    f.count(table, 8 * KEPT, at.neg(f.read(own, 8 * BYTES)))
    at.ret(f.read(found, _BASE))
    return f.function


def _release(module: Any, take: Any) -> Any:
    """(table) → nothing. Frees all free blocks."""
    f = _Function(module, "tenfold_release", 1, returns=False)
    at, (table,) = f.at, f.arguments
    own = at.alloca(f.word)
    at.store(at.add(table, f.number(8 * CLASSES)), own)
    turn, end = f.function.append_basic_block(), f.function.append_basic_block()
    at.branch(turn)
    at.position_at_end(turn)
    base = at.call(take, [table, at.load(own)])
    with at.if_else(at.icmp_unsigned("!=", base, f.number(0))) as (some, none):
        with some:
            size = f.read(at.load(own), 8 * BYTES)
            f.call(f.read(table, 8 * FREE), [f.read(table, 8 * CONTEXT), base, size], returns=False)
        with none:
            at.store(at.add(at.load(own), f.number(8 * CLASS_WORDS)), own)
    at.cbranch(at.icmp_unsigned("<", at.load(own), at.add(table, f.number(8 * TABLE_WORDS))), turn, end)
    at.position_at_end(end)
    at.ret_void()
    return f.function


def _malloc(module: Any, release: Any) -> Any:
    """(table, size) → block or 0."""
    f = _Function(module, "tenfold_malloc", 2)
    at, (table, size) = f.at, f.arguments
    with at.if_then(at.not_(_is_kept_size(f, size))):
        at.ret(f.call(f.read(table, 8 * MALLOC), [f.read(table, 8 * CONTEXT), size]))
    # class_of
    last = at.sub(size, f.number(1))
    shift = at.sub(f.number(63 - _BITS), at.ctlz(last, f.ir.Constant(f.ir.IntType(1), 1)))
    part = at.lshr(last, shift)
    number = at.sub(at.add(at.shl(shift, f.number(_BITS)), part), f.number(_FIRST_CLASS))
    nbytes = at.shl(at.add(part, f.number(1)), shift)
    own = at.add(table, at.add(at.mul(number, f.number(8 * CLASS_WORDS)), f.number(8 * CLASSES)))
    found = f.read(own, 8 * FIRST)
    with at.if_then(at.icmp_unsigned("!=", found, f.number(0))):
        f.write(own, 8 * FIRST, f.read(found, _NEXT))
        count, fewest = f.count(own, 8 * COUNT, f.number(-1)), f.read(own, 8 * FEWEST)
        f.write(own, 8 * FEWEST, at.select(at.icmp_signed("<", count, fewest), count, fewest))
        f.count(table, 8 * KEPT, at.neg(nbytes))
        f.count(table, 8 * IN_USE, nbytes)
        f.count(table, 8 * HITS, f.number(1))
        f.write(found, _MARK, at.xor(found, f.number(_IN_USE_MARK)))
        at.ret(found)
    f.count(table, 8 * MISSES, f.number(1))
    wanted = [f.read(table, 8 * CONTEXT), at.add(nbytes, f.number(_HEADER + 2 * _ALIGNED))]
    kept = at.alloca(f.word)
    at.store(f.call(f.read(table, 8 * MALLOC), wanted), kept)
    with at.if_then(at.icmp_unsigned("==", at.load(kept), f.number(0))):
        # no memory: with what is kept here there may be some
        at.call(release, [table])
        at.store(f.call(f.read(table, 8 * MALLOC), wanted), kept)
        with at.if_then(at.icmp_unsigned("==", at.load(kept), f.number(0))):
            at.ret(f.number(0))
    base = at.load(kept)
    block = at.and_(at.add(base, f.number(_HEADER + _ALIGNED - 1)), f.number(-_ALIGNED))
    begins_page = at.icmp_unsigned("==", at.and_(block, f.number(4095)), f.number(0))
    block = at.select(begins_page, at.add(block, f.number(_ALIGNED)), block)
    f.write(block, _BASE, base)
    f.write(block, _CLASS, own)
    f.write(block, _MARK, at.xor(block, f.number(_IN_USE_MARK)))
    f.write(own, 8 * BYTES, nbytes)
    f.count(table, 8 * IN_USE, nbytes)
    at.ret(block)
    return f.function


def _free(module: Any) -> Any:
    """(table, block, size) → nothing."""
    f = _Function(module, "tenfold_free", 3, returns=False)
    at, (table, block, size) = f.at, f.arguments
    with at.if_then(at.not_(_is_ours(f, block))):
        f.call(f.read(table, 8 * FREE), [f.read(table, 8 * CONTEXT), block, size], returns=False)
        at.ret_void()
    own = f.read(block, _CLASS)
    nbytes = f.read(own, 8 * BYTES)
    f.write(block, _MARK, f.number(0))
    f.count(table, 8 * IN_USE, at.neg(nbytes))
    with at.if_then(at.icmp_signed(">", at.add(f.read(table, 8 * KEPT), nbytes), f.read(table, 8 * KEEP))):
        base = f.read(block, _BASE)
        f.call(f.read(table, 8 * FREE), [f.read(table, 8 * CONTEXT), base, nbytes], returns=False)
        at.ret_void()
    f.write(block, _NEXT, f.read(own, 8 * FIRST))
    f.write(own, 8 * FIRST, block)
    f.count(own, 8 * COUNT, f.number(1))
    f.count(table, 8 * KEPT, nbytes)
    at.ret_void()
    return f.function


def _calloc(module: Any, malloc: Any) -> Any:
    """(table, count, size of one) → block or 0. NumPy has checked that the product is a size."""
    f = _Function(module, "tenfold_calloc", 3)
    at, (table, count, each) = f.at, f.arguments
    size = at.mul(count, each)
    cleared = at.icmp_unsigned("<=", at.sub(size, f.number(SMALLEST)), f.number(LARGEST_CLEARED - SMALLEST))
    with at.if_then(at.not_(cleared)):
        at.ret(f.call(f.read(table, 8 * CALLOC), [f.read(table, 8 * CONTEXT), count, each]))
    block = at.call(malloc, [table, size])
    with at.if_then(at.icmp_unsigned("!=", block, f.number(0))):
        kind = f.ir.FunctionType(
            f.ir.VoidType(), [f.ir.IntType(8).as_pointer(), f.ir.IntType(8), f.word, f.ir.IntType(1)]
        )
        clear = module.declare_intrinsic("llvm.memset", [f.ir.IntType(8).as_pointer(), f.word], kind)
        zero, no = f.ir.Constant(f.ir.IntType(8), 0), f.ir.Constant(f.ir.IntType(1), 0)
        at.call(clear, [f.pointer(block), zero, size, no])
    at.ret(block)
    return f.function


def _realloc(module: Any, malloc: Any, free: Any) -> Any:
    """(table, block, size) → block or 0."""
    f = _Function(module, "tenfold_realloc", 3)
    at, (table, block, size) = f.at, f.arguments
    with at.if_then(at.not_(_is_ours(f, block))):
        at.ret(f.call(f.read(table, 8 * REALLOC), [f.read(table, 8 * CONTEXT), block, size]))
    old = f.read(f.read(block, _CLASS), 8 * BYTES)
    moved = at.call(malloc, [table, size])
    with at.if_then(at.icmp_unsigned("!=", moved, f.number(0))):
        pointer = f.ir.IntType(8).as_pointer()
        kind = f.ir.FunctionType(f.ir.VoidType(), [pointer, pointer, f.word, f.ir.IntType(1)])
        copy = module.declare_intrinsic("llvm.memcpy", [pointer, pointer, f.word], kind)
        least = at.select(at.icmp_unsigned("<", old, size), old, size)
        at.call(copy, [f.pointer(moved), f.pointer(block), least, f.ir.Constant(f.ir.IntType(1), 0)])
        at.call(free, [table, block, old])
    at.ret(moved)
    return f.function


def compile_functions() -> tuple[dict[str, int], object]:
    """The addresses of malloc, calloc, realloc, free, take and release; and what keeps the code: not to be freed.

    Blocks for some 50 ms. Raises what llvmlite raises where there can be no code.
    """
    from llvmlite import ir

    module = ir.Module("tenfold_memory")
    take, free = _take(module), _free(module)
    release = _release(module, take)
    malloc = _malloc(module, release)
    written = [malloc, free, take, release, _calloc(module, malloc), _realloc(module, malloc, free)]
    engine = compile_module(module)
    return {each.name.removeprefix("tenfold_"): engine.get_function_address(each.name) for each in written}, engine
