"""How does a kernel become machine code that runs without Numba?  As one object file with one C function.

Numba compiles the kernel.  Around it stands a function with a plain C signature ::

    int entry(PyTypeObject *ndarray, argument ..., result *)

whose arguments are ``long long``, ``double``, ``char`` or NumPy arrays; named tuples are passed field by field.  It
reads the arrays' data and shape where NumPy's C interface has them (``PyArrayObject``, the same since NumPy 1.7), and
gives 0, or ``FAILED`` where the kernel raised, or ``WRONG_ARGUMENT`` plus the number of an argument that is not an
array of the declared type, shape and layout, in which case nothing was computed.

Numba's kernels take scratch memory from its run-time library.  Here it comes from ``malloc`` instead, so that the
object file needs the C library alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrtdynmod import _meminfo_struct_type
from numba.np.arrayobj import populate_array

from solver.selection.kernel_types import ELEMENTS, ENTRY, FAILED, WRONG_ARGUMENT, Record, Signature, Type

# Sums stay in the written order, so that the same input gives the same bits; what is relaxed concerns only
# not-a-number, signed zero and fused multiply-add, none of which a kernel meets.
RELAXED = {"nnan", "nsz", "contract"}

WORD = ir.IntType(64)
INT = ir.IntType(32)
BYTE = ir.IntType(8)
POINTER = BYTE.as_pointer()

# Where the fields of PyObject, PyArrayObject and PyArray_Descr begin, in bytes; what comes before them is Python's head.
HEAD = object.__basicsize__
TYPE_AT, TYPE_NUMBER_AT = HEAD - 8, HEAD + 12
DATA_AT, NDIM_AT, SHAPE_AT, DESCR_AT, FLAGS_AT = HEAD, HEAD + 8, HEAD + 16, HEAD + 40, HEAD + 48
# NPY_ARRAY_C_CONTIGUOUS, _ALIGNED, _WRITEABLE.
CONTIGUOUS, ALIGNED, WRITEABLE = 0x0001, 0x0100, 0x0400

C_LIBRARY = frozenset({"malloc", "free", "memset", "memcpy", "memmove", "floor", "ceil", "log2"})
"""What an object file may ask of the process that loads it."""


def numba_type(kind: Type | Record) -> Any:
    """Numba's name for a type of a kernel's argument or result."""
    if isinstance(kind, Record):
        fields = [numba_type(each) for each in kind.fields]
        if len(set(fields)) == 1:
            return types.NamedUniTuple(fields[0], len(fields), kind.name)  # type: ignore[no-untyped-call]
        return types.NamedTuple(fields, kind.name)  # type: ignore[no-untyped-call]
    element = getattr(types, kind.element)
    return types.Array(element, kind.ndim, "C", readonly=kind.readonly) if kind.ndim else element


def compile_(function: Any, signature: Signature | None) -> Any:
    """Numba's function; without a signature, one that takes its types from the kernel that calls it."""
    if signature is None:
        return njit(function)
    arguments = [numba_type(each) for each in signature.arguments]
    return njit(numba_type(signature.result)(*arguments), nogil=True, fastmath=RELAXED)(function)


def object_code(compiled: Any, signature: Signature) -> bytes:
    """The object file of a compiled kernel.  Raises ``AssertionError`` where it needs more than the C library."""
    (result,) = compiled.overloads.values()
    codegen = result.target_context.codegen()
    with global_compiler_lock:
        library = codegen.create_library(ENTRY)
        module = library.create_ir_module(ENTRY)
        _Entry(module, result, signature).write()
        _define_memory(module)
        library.add_ir_module(module)
        final = library._final_module
        final.link_in(result.library._get_module_for_linking(), preserve=True)
        for each in final.functions:
            if not each.is_declaration and each.name != ENTRY:
                each.linkage = "internal"  # so that LLVM drops what it has put into its callers
        # The library is not finalized, because that would give these functions to Numba's other code in the process.
        library._optimize_final_module()
    final.verify()
    needed = {each.name for each in final.functions if each.is_declaration and not each.name.startswith("llvm.")}
    if not needed <= C_LIBRARY:
        raise AssertionError(f"{compiled.__name__} needs {', '.join(sorted(needed - C_LIBRARY))}")
    return bytes(codegen._tm.emit_object(final))


class _Entry:
    """Writes the C function around one compiled kernel."""

    def __init__(self, module: Any, compiled: Any, signature: Signature) -> None:
        self.module, self.compiled, self.signature = module, compiled, signature
        self.context = compiled.target_context
        arguments = [POINTER, *(_c_type(each) for each in signature.flat), POINTER]
        self.function = ir.Function(module, ir.FunctionType(INT, arguments), ENTRY)
        self.builder = ir.IRBuilder(self.function.append_basic_block())

    def write(self) -> None:
        """The whole function: check, unpack, call, store the result."""
        ndarray, *given, place = self.function.args
        values = [self._value(index, each, ndarray, given[index]) for index, each in enumerate(self.signature.flat)]
        types_ = self.compiled.signature.args
        arguments, left = [], iter(values)
        for kind, type_ in zip(self.signature.arguments, types_, strict=True):
            if isinstance(kind, Record):
                fields = [next(left) for _ in kind.fields]
                arguments.append(self.context.make_tuple(self.builder, type_, fields))
            else:
                arguments.append(next(left))
        descriptor = self.compiled.fndesc
        callee = self.context.declare_function(self.module, descriptor)
        status, answer = self.context.call_conv.call_function(
            self.builder, callee, descriptor.restype, descriptor.argtypes, arguments
        )
        with self.builder.if_then(status.is_error, likely=False):
            self.builder.ret(ir.Constant(INT, FAILED))
        if self.signature.result.element != "void":
            stored = self.context.data_model_manager[descriptor.restype].as_data(self.builder, answer)
            self.builder.store(stored, self.builder.bitcast(place, stored.type.as_pointer()))
        self.builder.ret(ir.Constant(INT, 0))

    def _value(self, index: int, kind: Type, ndarray: Any, given: Any) -> Any:
        type_ = numba_type(kind)
        if not kind.ndim:
            return self.context.data_model_manager[type_].from_data(self.builder, given)
        self._check(index, kind, ndarray, given)
        shape_at = self._load(given, SHAPE_AT, WORD.as_pointer())
        shape = [self.builder.load(self.builder.gep(shape_at, [ir.Constant(WORD, axis)])) for axis in range(kind.ndim)]
        itemsize = ir.Constant(WORD, _dtype(kind).itemsize)
        strides = [itemsize]
        for length in reversed(shape[1:]):
            strides.insert(0, self.builder.mul(strides[0], length))
        array = self.context.make_array(type_)(self.context, self.builder)
        data = self._load(given, DATA_AT, array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()

    def _check(self, index: int, kind: Type, ndarray: Any, given: Any) -> None:
        """Leave unless this object is an array of that type, number of axes and layout."""
        builder, wrong = self.builder, ir.Constant(INT, WRONG_ARGUMENT + index)
        with builder.if_then(builder.icmp_unsigned("!=", self._load(given, TYPE_AT, POINTER), ndarray), likely=False):
            builder.ret(wrong)
        wanted = CONTIGUOUS | ALIGNED | (0 if kind.readonly else WRITEABLE)
        flags = builder.and_(self._load(given, FLAGS_AT, INT), ir.Constant(INT, wanted))
        number = self._load(self._load(given, DESCR_AT, POINTER), TYPE_NUMBER_AT, INT)
        fine = builder.icmp_unsigned("==", flags, ir.Constant(INT, wanted))
        fine = builder.and_(fine, builder.icmp_unsigned("==", number, ir.Constant(INT, _dtype(kind).num)))
        axes = self._load(given, NDIM_AT, INT)
        fine = builder.and_(fine, builder.icmp_unsigned("==", axes, ir.Constant(INT, kind.ndim)))
        with builder.if_then(builder.not_(fine), likely=False):
            builder.ret(wrong)

    def _load(self, base: Any, offset: int, type_: Any) -> Any:
        place = self.builder.gep(base, [ir.Constant(WORD, offset)])
        return self.builder.load(self.builder.bitcast(place, type_.as_pointer()))


def _dtype(kind: Type) -> np.dtype[Any]:
    return np.dtype(ELEMENTS[kind.element])


def _c_type(kind: Type) -> Any:
    if kind.ndim:
        return POINTER
    return {"int64": WORD, "float64": ir.DoubleType(), "boolean": BYTE}[kind.element]


def _define_memory(module: Any) -> None:
    """Scratch arrays from ``malloc``: what Numba calls ``NRT_MemInfo_alloc_aligned`` and ``NRT_MemInfo_call_dtor``.

    A block begins with Numba's head (count of references, destructor, its argument, data, size); the data follow,
    aligned.
    """
    malloc = ir.Function(module, ir.FunctionType(POINTER, [WORD]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "free")
    take = ir.Function(module, ir.FunctionType(POINTER, [WORD, INT]), "NRT_MemInfo_alloc_aligned")
    builder = ir.IRBuilder(take.append_basic_block())
    size, align = take.args[0], builder.zext(take.args[1], WORD)
    head = cgutils.sizeof(builder, _meminfo_struct_type.as_pointer())
    block = builder.call(malloc, [builder.add(builder.add(head, size), align)])
    with builder.if_then(cgutils.is_null(builder, block), likely=False):
        builder.ret(block)
    first = builder.add(builder.add(builder.ptrtoint(block, WORD), head), builder.sub(align, ir.Constant(WORD, 1)))
    data = builder.inttoptr(builder.and_(first, builder.neg(align)), POINTER)
    fields = builder.bitcast(block, _meminfo_struct_type.as_pointer())
    nothing = ir.Constant(POINTER, None)
    for place, value in enumerate((ir.Constant(WORD, 1), nothing, nothing, data, size)):
        builder.store(value, cgutils.gep(builder, fields, 0, place))
    builder.ret(block)
    give = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "NRT_MemInfo_call_dtor")
    builder = ir.IRBuilder(give.append_basic_block())
    builder.call(free, [give.args[0]])
    builder.ret_void()
